"""An exit code other than 0 fails the execution; the end of standard error becomes its error."""

import json
import sys

amount = json.load(sys.stdin)["amount"]
if amount % 2 == 1:
    sys.exit(f"The amount {amount} is odd, and this till takes even amounts only.")
print(f"The till took {amount}.")
