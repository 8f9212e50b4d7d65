// Runs programs of the native library, compiled for WebAssembly, on signals. docs/browser.py makes the data.
(() => {
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const rowsOf = (processor) => (processor.bytes ??= processor.pieces.map(bytes));
  let engine;

  // What the C library may ask of its system: there is no environment and no file.
  const system = {
    environ_sizes_get(count, size) {
      const view = new DataView(engine.memory.buffer);
      view.setUint32(count, 0, true);
      view.setUint32(size, 0, true);
      return 0;
    },
    environ_get: () => 0,
    proc_exit(code) { throw new Error(`the engine ended with status ${code}`); },
  };
  const missing = new Proxy(system, { get: (known, name) => known[name] ?? (() => 52) }); // 52: no such function

  async function start() {
    const module = await WebAssembly.compile(bytes(globalThis.torchfxEngine));
    const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: missing });
    engine = instance.exports;
    engine._initialize?.();
    delete globalThis.torchfxEngine;
  }

  // Returns the outputs of a program of a processor, for as many channels as it was made for.
  function run(processor, program, channels) {
    const held = [];
    const room = (size) => {
      const place = engine.malloc(Math.max(size, 8));
      if (!place) throw new Error("the recording does not fit in memory");
      held.push(place);
      return place;
    };
    try {
      const samples = channels[0].length, rows = channels.length, pieces = rowsOf(processor);
      const words = bytes(program.words), code = room(words.length), states = room(program.size);
      const constants = program.constants.map(([, number]) => [number, room(pieces[number].length)]);
      const x = room(4 * rows * samples), y = room(4 * rows * samples);
      const memory = new Uint8Array(engine.memory.buffer), view = new DataView(engine.memory.buffer);
      memory.set(words, code);
      memory.fill(0, states, states + program.size);
      for (const [offset, number] of program.rest) memory.set(pieces[number], states + offset);
      constants.forEach(([number, place], i) => {
        memory.set(pieces[number], place);
        view.setBigInt64(code + 8 * program.constants[i][0], BigInt(place), true);
      });
      for (const [place, offset] of program.states) view.setBigInt64(code + 8 * place, BigInt(states + offset), true);
      const floats = (place) => new Float32Array(engine.memory.buffer, place, rows * samples);
      channels.forEach((channel, i) => floats(x).set(channel, i * samples));
      const n = BigInt(samples);
      const status = engine.torchfx_program_run_copied(
        code, BigInt(words.length / 8), states, BigInt(program.size), BigInt(program.late), x, n, 1n, y, n,
        BigInt(rows), n, 1024n, 1);
      if (status) throw new Error(`the engine refuses the program: status ${status}`);
      const found = floats(y); // memory may have grown
      return channels.map((_, i) => found.slice(i * samples, (i + 1) * samples));
    } finally {
      held.forEach((place) => engine.free(place));
    }
  }

  globalThis.torchfxRunner = { start, run, bytes };
})();
