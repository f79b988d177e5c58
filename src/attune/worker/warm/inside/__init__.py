"""What runs in the interpreters of actions. The standard library alone, and no syntax younger than Python 3.8."""
