"""Reads its parameters as JSON from standard input; the last line that it prints is the result's data."""

import json
import os
import sys
import time

parameters = json.load(sys.stdin)

print(f"Asking the bank for {parameters['amount']} from {parameters['customer']} ...")
time.sleep(parameters["seconds"])
print("The bank says yes.")

receipt = {
    "customer": parameters["customer"],
    "charged": parameters["amount"],
    "receipt": f"demo-{os.environ['ATTUNE_EXEC_ID']}",
}
print(json.dumps(receipt))
