// The page in-the-browser: choose a filter or an effect, move its sliders, hear and see what it does.
(() => {
  const { start, run, bytes } = globalThis.torchfxRunner, { rate, recording, processors } = globalThis.torchfxData;
  const part = (name) => document.querySelector(`#try [data-part=${name}]`);
  const [choice, settings, said, canvas] = ["choice", "settings", "said", "canvas"].map(part);
  let before, after, positions = [], context, playing;

  const chosen = () => processors[choice.selectedIndex];
  const stride = (sliders, i) => sliders.slice(i + 1).reduce((product, each) => product * each.values.length, 1);
  const programAt = (processor, at) =>
    processor.programs[processor.sliders.reduce((sum, _, i) => sum + at[i] * stride(processor.sliders, i), 0)];

  function demo() {
    const frames = new Int16Array(bytes(recording).buffer), samples = frames.length / 2;
    return [0, 1].map((c) => Float32Array.from(frames.subarray(c * samples, (c + 1) * samples), (each) => each / 32768));
  }

  async function read(file) {
    const decoder = new OfflineAudioContext(2, 1, rate);
    const found = await decoder.decodeAudioData(await file.arrayBuffer());
    return [0, Math.min(1, found.numberOfChannels - 1)].map((c) => found.getChannelData(c).slice());
  }

  function sliders() {
    settings.replaceChildren();
    positions = chosen().sliders.map((each) => each.values.length >> 1);
    chosen().sliders.forEach((each, i) => {
      const label = document.createElement("label"), slider = document.createElement("input"), value = document.createElement("output");
      Object.assign(slider, { type: "range", min: 0, max: each.values.length - 1, value: positions[i] });
      const show = () => { slider.setAttribute("aria-valuetext", (value.textContent = each.labels[positions[i]])); };
      slider.addEventListener("input", () => { positions[i] = Number(slider.value); show(); process(); });
      show();
      label.append(each.name, slider, value);
      settings.append(label);
    });
    const link = part("page");
    link.href = chosen().page;
    link.textContent = chosen().name;
    part("summary").textContent = chosen().summary.replaceAll("`", "");
    process();
  }

  function process() {
    const processor = chosen(), program = programAt(processor, positions);
    const given = { ...processor.given };
    processor.sliders.forEach((each, i) => { given[each.name] = each.values[positions[i]]; });
    const words = Object.entries(given).map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ");
    part("code").textContent = `wave | fx.${processor.module}.${processor.name}(${words})`;
    after = before;
    said.textContent = "";
    if (program) {
      const began = performance.now();
      try {
        after = run(processor, program, before);
        const seconds = before[0].length / rate, ms = performance.now() - began;
        said.textContent = `${seconds.toFixed(1)} s of sound took ${ms < 10 ? ms.toFixed(1) : ms.toFixed(0)} ms.`;
      } catch (error) {
        said.textContent = error instanceof WebAssembly.RuntimeError ? "The recording does not fit in memory." : error.message;
      }
    } else said.textContent = "These values do not go together; you hear the recording as it is.";
    draw();
    if (playing) play(playing.what, playing.offset());
  }

  function draw() {
    const width = (canvas.width = canvas.clientWidth * devicePixelRatio), height = (canvas.height = canvas.clientHeight * devicePixelRatio);
    const pen = canvas.getContext("2d"), style = getComputedStyle(canvas);
    for (const [signal, colour, alpha] of [[before, style.getPropertyValue("--before"), 1], [after, style.getPropertyValue("--after"), 0.7]]) {
      pen.fillStyle = colour;
      pen.globalAlpha = alpha;
      for (let column = 0; column < width; column++) {
        const from = Math.floor((column * signal[0].length) / width), to = Math.max(from + 1, Math.floor(((column + 1) * signal[0].length) / width));
        let low = 0, high = 0;
        for (let t = from; t < to; t++) { low = Math.min(low, signal[0][t]); high = Math.max(high, signal[0][t]); }
        pen.fillRect(column, ((1 - Math.min(high, 1)) * height) / 2, 1, Math.max(1, ((Math.min(high, 1) - Math.max(low, -1)) * height) / 2));
      }
    }
  }

  function stop() {
    playing?.source.stop();
    playing = undefined;
    for (const name of ["before", "after"]) part(name).setAttribute("aria-pressed", "false");
  }

  function play(what, offset = 0) {
    stop();
    context ??= new AudioContext({ sampleRate: rate });
    const signal = what === "before" ? before : after, source = context.createBufferSource();
    const peak = signal.reduce((most, channel) => channel.reduce((top, each) => Math.max(top, Math.abs(each)), most), 0);
    source.buffer = context.createBuffer(signal.length, signal[0].length, rate);
    const level = peak > 1 ? 1 / peak : 1; // what would clip is turned down
    signal.forEach((channel, c) => source.buffer.copyToChannel(channel.map((each) => each * level), c));
    source.loop = true;
    source.connect(context.destination);
    source.start(0, offset % source.buffer.duration);
    const began = context.currentTime - offset;
    playing = { what, source, offset: () => context.currentTime - began };
    part(what).setAttribute("aria-pressed", "true");
  }

  function save() {
    const samples = after[0].length, file = new DataView(new ArrayBuffer(44 + 8 * samples));
    const text = (place, letters) => [...letters].forEach((letter, i) => file.setUint8(place + i, letter.charCodeAt(0)));
    text(0, "RIFF"); file.setUint32(4, 36 + 8 * samples, true); text(8, "WAVEfmt "); file.setUint32(16, 16, true);
    file.setUint16(20, 3, true); file.setUint16(22, 2, true); file.setUint32(24, rate, true); file.setUint32(28, 8 * rate, true);
    file.setUint16(32, 8, true); file.setUint16(34, 32, true); text(36, "data"); file.setUint32(40, 8 * samples, true);
    for (let t = 0; t < samples; t++) for (const c of [0, 1]) file.setFloat32(44 + 8 * t + 4 * c, after[c][t], true);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([file.buffer], { type: "audio/wav" }));
    link.download = `${chosen().name}.wav`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }

  // For tests: the output of a processor, by name, at the positions of its sliders.
  globalThis.torchfxTry = (name, at, channels) => {
    const processor = processors.find((each) => each.name === name), program = programAt(processor, at);
    return program && run(processor, program, channels.map((each) => Float32Array.from(each))).map((each) => [...each]);
  };

  for (const each of processors) choice.add(new Option(each.name));
  choice.value = "Compressor";
  choice.addEventListener("change", sliders);
  for (const name of ["before", "after"]) part(name).addEventListener("click", () => (playing?.what === name ? stop() : play(name, playing?.offset())));
  part("save").addEventListener("click", save);
  part("file").addEventListener("change", async ({ target }) => {
    if (!target.files.length) return;
    stop();
    try {
      before = await read(target.files[0]);
      process();
    } catch (error) {
      said.textContent = `The browser cannot read ${target.files[0].name}: ${error.message}`;
    }
  });
  addEventListener("resize", () => before && draw());
  start().then(() => {
    before = demo();
    sliders();
    document.getElementById("try").dataset.ready = "";
  }, (error) => { said.textContent = `This browser cannot run the engine: ${error.message}`; });
})();
