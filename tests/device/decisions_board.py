"""MicroPython's half of test_decisions.py: a line with rules, a tool and a call comes in, a line
with the decision goes out.
"""

import json
import sys

from clawlite.core.policy.policy import DECISION_ACTION, DECISION_TRACE, decide, paths_of


class Rules:
    def __init__(self, rules):
        self.rules = rules

    def rule(self, number):
        return self.rules[number]


def main():
    for line in sys.stdin:
        rules, entry, names, arguments, used = json.loads(line)
        found = decide(Rules(rules), entry, paths_of(names, arguments), used)
        print(json.dumps([found[DECISION_ACTION], found[DECISION_TRACE]]))
