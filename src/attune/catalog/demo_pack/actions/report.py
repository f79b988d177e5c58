"""What is printed is seen at once, also while the action still runs."""

import json
import sys
import time

parameters = json.load(sys.stdin)
pages = parameters["pages"]

for page in range(1, pages + 1):
    time.sleep(parameters["seconds"])
    print(f"Page {page} of {pages} is written.")
print(json.dumps({"pages": pages}))
