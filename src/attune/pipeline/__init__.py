"""What happens, from left to right: a stage imports only stages to its left.

executions, events, rules, enforcements, policies, queues, scheduling, completion, inquiries, workflows.
In each stage the same files: `model.py` (frozen structs), `decide.py` (pure), `steps.py` (transactions),
`service.py` (the loop).
"""
