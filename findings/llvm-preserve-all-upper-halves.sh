#!/bin/sh
# LLVM 20.1.8 (llvmlite 0.46.0), x86-64 with AVX: a function with the calling convention preserve_allcc saves the registers of 32
# bytes that it uses, restores them, and then clears the upper halves of all of them (vzeroupper) before it returns. The language
# reference says that the convention preserves XMMs and YMMs, and a caller keeps such values over the call. They come back with zeros in lanes 2 and 3.
#
# Seen: a caller that holds [1.5, 2.5, 3.5, 4.5] over the call stores [1.5, 2.5, 0.0, 0.0]; right with ccc, coldcc and
# preserve_mostcc. Pullback calls the functions that compute a line of arithmetic again with coldcc (decision 64).
# LLVM 22 emits the same instruction there.
#
# Installs the pinned package in a temporary folder, runs it, and fails if the behaviour is another one.
set -eu
if ! grep -qw avx /proc/cpuinfo; then
    echo "this machine has no AVX: nothing to see here"
    exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-cache-dir "llvmlite==0.46.0"
"$folder/venv/bin/python" - <<'PROGRAM'
import ctypes

import llvmlite
import llvmlite.binding as llvm

llvm.initialize_native_target()
llvm.initialize_native_asmprinter()

# `keeps` copies four numbers in one register, with a call between the load and the store.
TEXT = """
@sink = global <4 x double> zeroinitializer, align 32
@source = global <4 x double> <double 1.0, double 2.0, double 3.0, double 4.0>, align 32

define CONVENTION void @aside(ptr %p) noinline {
  %a = load volatile <4 x double>, ptr %p, align 32
  %b = fmul <4 x double> %a, %a
  store volatile <4 x double> %b, ptr @sink, align 32
  ret void
}

define void @keeps(ptr %in, ptr %out) {
  %v = load volatile <4 x double>, ptr %in, align 32
  call CONVENTION void @aside(ptr @source)
  store volatile <4 x double> %v, ptr %out, align 32
  ret void
}
"""
NUMBERS = [1.5, 2.5, 3.5, 4.5]


def copied(convention):
    module = llvm.parse_assembly(TEXT.replace("CONVENTION", convention))
    machine = llvm.Target.from_default_triple().create_target_machine(features="+avx", opt=2)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    keeps = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(engine.get_function_address("keeps"))
    room = (ctypes.c_double * 12)()
    at = (ctypes.addressof(room) + 31) // 32 * 32
    given = (ctypes.c_double * 4).from_address(at)
    taken = (ctypes.c_double * 4).from_address(at + 32)
    given[:] = NUMBERS
    keeps(at, at + 32)
    return list(taken)


version = ".".join(map(str, llvm.llvm_version_info))
print(f"llvmlite {llvmlite.__version__}, LLVM {version}")
for convention in ("ccc", "coldcc", "preserve_mostcc", "preserve_allcc"):
    out = copied(convention)
    print(f"{convention}: {out}")
    right = convention != "preserve_allcc"
    assert out == (NUMBERS if right else [1.5, 2.5, 0.0, 0.0]), "the behaviour has changed"
PROGRAM
