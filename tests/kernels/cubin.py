"""Reads machine code out of cubins without the toolkit's disassembler. An instruction has 16 bytes; the low 12 bits are the
opcode with its operand form. What is decoded here was read off one-instruction kernels compiled with ptxas 13."""
import struct

HMMA = 0x23C   # mma.sync of 16-bit operands
LDG = 0x981    # ld.global
LDGSTS = 0xFAE  # cp.async
BRA = 0x947
EXIT = 0x94D
LOAD_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 8, 6: 16}


def functions(path):
    """(mangled name, list of (opcode, low word, high word)) of each kernel."""
    data = open(path, "rb").read()
    table, = struct.unpack_from("<Q", data, 0x28)
    count, names = struct.unpack_from("<HH", data, 0x3C)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + 64 * i) for i in range(count)]
    for header in headers:
        start = headers[names][4] + header[0]
        name = data[start:data.index(b"\0", start)].decode()
        if not name.startswith(".text."):
            continue
        code = data[header[4]:header[4] + header[5]]
        words = [struct.unpack_from("<QQ", code, at) for at in range(0, len(code) - 15, 16)]
        yield name[len(".text."):], [(low & 0xFFF, low, high) for low, high in words]


def never_runs(low):
    """Predicated with !PT: ptxas pads with such instructions."""
    return low >> 12 & 0xF == 0xF


def load_bytes(high):
    """Bytes that one thread loads with an LDG or LDGSTS."""
    return LOAD_BYTES.get(high >> 9 & 7, 0)


def _signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) else value


def branch_target(index, low, high, capability):
    """Index of the instruction that a BRA at `index` goes to."""
    if capability >= 90:
        offset = _signed((low >> 34 | (high & 0x3FFFF) << 30) << 8 | (low >> 16 & 0xFF), 56) * 4
    else:
        offset = _signed(low >> 32 | (high & 0x3FFFF) << 32, 50)
    return index + 1 + offset // 16


def _loop_of(latch, header, before):
    """Instructions of the natural loop: those that reach the latch without passing the header."""
    body, waiting = {header, latch}, [latch]
    while waiting:
        at = waiting.pop()
        if at == header:
            continue
        for earlier in before[at]:
            if earlier not in body:
                body.add(earlier)
                waiting.append(earlier)
    return body


def main_loop(code, capability):
    """The innermost loop with the most HMMAs, with the blocks that lie apart: its instructions; [] when none has one."""
    before, back = [[] for _ in range(len(code) + 1)], []
    for index, (opcode, low, high) in enumerate(code):
        if never_runs(low):
            before[index + 1].append(index)
            continue
        always = low >> 12 & 0xF == 7
        if opcode == BRA:
            target = branch_target(index, low, high, capability)
            if 0 <= target < len(code):
                before[target].append(index)
                if target <= index:
                    back.append((index, target))
        if opcode not in (BRA, EXIT) or not always:
            before[index + 1].append(index)
    best, best_count = [], 0
    for latch, header in back:
        body = [code[i] for i in sorted(_loop_of(latch, header, before)) if not never_runs(code[i][1])]
        count = sum(i[0] == HMMA for i in body)
        if count > best_count or (count == best_count and count and len(body) < len(best)):
            best, best_count = body, count
    return best
