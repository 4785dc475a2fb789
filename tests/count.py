"""Reads CTest's JUnit file; prints what failed and, as the last line, "N passed, N failed" (", N skipped" when some were)."""

import sys
import xml.etree.ElementTree as ElementTree


def outcome(case):
    """passed, failed or skipped; a test that could not be started has failed."""
    status = case.get("status")
    if status == "run":
        return "passed"
    skipped = case.find("skipped")
    message = "" if skipped is None else skipped.get("message", "")
    return "skipped" if status == "disabled" or message.startswith("SKIP_") else "failed"


def main(path):
    try:
        cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError) as error:
        print(f"no test report: {error}")
        print("0 passed, 1 failed")
        return 1
    names = {"passed": [], "failed": [], "skipped": []}
    for case in cases:
        names[outcome(case)].append(case.get("name"))
    for status in ("skipped", "failed"):
        for name in names[status]:
            print(f"{status}: {name}")
    line = f"{len(names['passed'])} passed, {len(names['failed'])} failed"
    if names["skipped"]:
        line += f", {len(names['skipped'])} skipped"
    print(line)
    return 1 if names["failed"] or not names["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
