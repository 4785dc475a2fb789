"""Option structs of the public API: fields in alphabetical order, each with an initialiser.

An option struct is one whose name ends in Options, or one of OTHERS: programs fill them with designated initialisers, and
C++ wants those in the order of declaration.
"""

import re
import sys

import lint

OTHERS = ("EarlyStop", "Guard", "LossScale")
STRUCT = re.compile(r"\bstruct\s+(?:BRISK_EXPORT\s+)?(\w+)[^;{()]*\{")
FIELD = re.compile(r"^(?P<type>[\w:<>,\s*&()]+?)[\s*&]+(?P<name>\w+)\s*(?P<initial>=.*|\{.*\})?$", re.S)
SKIPPED = re.compile(r"^(using|static|friend|template|enum|struct|explicit|constexpr|typedef)\b")


def without_comments(text):
    blank = lambda match: re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r"//[^\n]*|/\*.*?\*/", blank, text, flags=re.S)


def body_end(text, start):
    depth = 1
    for position in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return position
    return len(text)


def statements(body):
    """(offset, text) of each statement at the top level of a struct's body; function bodies end one, too."""
    depth, start = 0, 0
    for position, letter in enumerate(body):
        depth += {"{": 1, "}": -1, "(": 1, ")": -1}.get(letter, 0)
        function_ends = letter == "}" and depth == 0 and ")" in body[start:position].split("{")[0]
        if depth == 0 and (letter == ";" or function_ends):
            text = body[start:position]
            yield start + len(text) - len(text.lstrip()), text.strip()
            start = position + 1


def fields(body):
    for offset, statement in statements(body):
        head = re.split(r"[={]", statement)[0]
        if not statement or SKIPPED.match(statement) or re.search(r"\w\s*\(", re.sub(r"<.*>", "", head)):
            continue
        match = FIELD.match(statement)
        if match:
            yield offset, match.group("name"), bool(match.group("initial"))


def check(tree):
    found = []
    for path in lint.files(tree, ("include",)):
        text = without_comments(path.read_text(encoding="utf-8"))
        for struct in STRUCT.finditer(text):
            if not struct.group(1).endswith("Options") and struct.group(1) not in OTHERS:
                continue
            previous = ""
            for offset, field, initialised in fields(text[struct.end():body_end(text, struct.end())]):
                line = text.count("\n", 0, struct.end() + offset) + 1
                where = f"{lint.name(tree, path)}:{line}: {struct.group(1)}.{field}"
                if not initialised:
                    found.append(f"{where} has no initialiser")
                if field < previous:
                    found.append(f"{where} stands after {previous}: fields are in alphabetical order")
                previous = field
    return found


CLEAN = {
    "include/brisk/a.h": """
struct BRISK_EXPORT GoodOptions {
  int64_t batch = 32;  ///< c, a, b
  std::string name{};
  std::function<int(int)> rate = {};
  void check() const { int b; }
  std::vector<std::pair<int, int>> steps{{1, 2}};
};
struct Clock { int updates; int epochs; };
"""
}
PLANTED = [
    ({"include/brisk/b.h": "struct BadOptions {\n  int b = 1;\n  int a = 1;\n};\n"}, ["b.h:3", "alphabetical"]),
    ({"include/brisk/b.h": "struct BadOptions {\n  std::string name;\n};\n"}, ["b.h:2", "no initialiser"]),
    ({"include/brisk/b.h": "struct EarlyStop {\n  int z = 0;\n  std::vector<int> a{};\n};\n"}, ["b.h:3", "alphabetical"]),
    ({"include/brisk/b.h": "struct XOptions {\n  bool f() { return 1; }\n  std::function<void(int)> g;\n};\n"}, ["XOptions.g"]),
]

if __name__ == "__main__":
    sys.exit(lint.main(check, PLANTED, CLEAN))
