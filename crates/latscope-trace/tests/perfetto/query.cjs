// Loads a trace into Perfetto's own importer and prints the rows of SQL queries.
//
//     node query.cjs DIRECTORY TRACE SQL...
//
// DIRECTORY holds engine_bundle.js and trace_processor.wasm of a Perfetto UI
// build: the engine that https://ui.perfetto.dev runs in a web worker. It is
// run here with just what it asks of a worker. One line of
// JSON is printed for each query: an array of rows, each an array of cells.
'use strict';
const fs = require('node:fs');
const path = require('node:path');

const [directory, trace, ...queries] = process.argv.slice(2);
const APPEND = 1, FINALIZE = 2, QUERY = 3; // TraceProcessorRpc.TraceProcessorMethod

// --- protobuf wire format: just what the messages below need ---

function varint(number) {
  const bytes = [];
  for (let rest = BigInt.asUintN(64, BigInt(number)); ; rest >>= 7n) {
    if (rest < 128n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 127n) | 128);
  }
}

const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) => Buffer.concat([varint((field << 3) | 2), varint(value.length), value]);

function readVarint(buffer, at) {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n) {
    const byte = buffer[at++];
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return [Number(BigInt.asIntN(64, value)), at];
  }
}

function* fields(buffer) {
  for (let at = 0; at < buffer.length;) {
    let tag, length;
    [tag, at] = readVarint(buffer, at);
    switch (tag & 7) {
      case 0: { let value; [value, at] = readVarint(buffer, at); yield [tag >>> 3, value]; break; }
      case 1: yield [tag >>> 3, buffer.subarray(at, at += 8)]; break;
      case 2: [length, at] = readVarint(buffer, at); yield [tag >>> 3, buffer.subarray(at, at += length)]; break;
      case 5: yield [tag >>> 3, buffer.subarray(at, at += 4)]; break;
      default: throw new Error(`wire type ${tag & 7}`);
    }
  }
}

function packed(buffer) {
  const values = [];
  for (let at = 0, value; at < buffer.length;) {
    [value, at] = readVarint(buffer, at);
    values.push(value);
  }
  return values;
}

// --- the engine in its worker ---

/** A synchronous request for a file of the directory: how a worker gets its wasm. */
class FileRequest {
  open(_method, url) { this.file = path.join(directory, path.basename(url)); }
  send() {
    const content = fs.readFileSync(this.file);
    this.status = 200;
    this.response = content.buffer.slice(content.byteOffset, content.byteOffset + content.length);
  }
}

function startEngine() {
  const diagnostics = [];
  const note = (...words) => diagnostics.push(words.join(' '));
  const self = { location: { href: 'https://worker.invalid/engine_bundle.js' } };
  // Parameters stand for the globals of a worker, and hide Node's `process`.
  const globals = {
    self, process: undefined, WorkerGlobalScope: Object, XMLHttpRequest: FileRequest,
    console: { log: note, warn: note, error: note, info: note, debug: note },
  };
  const source = fs.readFileSync(path.join(directory, 'engine_bundle.js'), 'utf8');
  new Function(...Object.keys(globals), source)(...Object.values(globals));
  const replies = [];
  const port = { postMessage: (data) => replies.push(Buffer.from(data)) };
  self.onmessage({ data: port });
  return { port, replies, diagnostics };
}

// The engine registers its callback in a microtask after the module has run.
async function untilReady(engine) {
  for (let turns = 0; turns < 100; turns++) await new Promise((resolve) => setTimeout(resolve, 1));
  if (typeof engine.port.onmessage !== 'function') {
    throw new Error(`the engine does not start: ${engine.diagnostics.join('\n')}`);
  }
}

let sequence = 0;
function call(engine, method, argument = Buffer.alloc(0)) {
  const message = Buffer.concat([number(1, sequence++), number(2, method), argument]);
  engine.port.onmessage({ data: new Uint8Array(bytes(1, message)) });
}

function rowsOf(replies) {
  let columns = [];
  const cells = [];
  for (const [, message] of replies.flatMap((reply) => [...fields(reply)]))
    for (const [field, value] of fields(message)) {
      if (field === 5) throw new Error(`fatal: ${value}`);
      if (field !== 203) continue;
      for (const [part, content] of fields(value)) {
        if (part === 1) columns.push(content.toString());
        if (part === 2 && content.length) throw new Error(content.toString());
        if (part === 3) cells.push(...cellsOf(content));
      }
    }
  const rows = [];
  for (let at = 0; at < cells.length; at += columns.length) rows.push(cells.slice(at, at + columns.length));
  return rows;
}

function cellsOf(batch) {
  let types = [];
  const values = { 1: null, 2: [], 3: [], 4: [] };
  for (const [field, content] of fields(batch)) {
    if (field === 1) types = packed(content);
    if (field === 2) values[2] = packed(content);
    if (field === 3) for (let at = 0; at < content.length; at += 8) values[3].push(content.readDoubleLE(at));
    if (field === 5) values[4] = content.toString().split('\0');
  }
  return types.map((type) => (type === 1 ? null : values[type].shift()));
}

(async () => {
  const engine = startEngine();
  await untilReady(engine);
  call(engine, APPEND, bytes(101, fs.readFileSync(trace)));
  call(engine, FINALIZE);
  for (const sql of queries) {
    engine.replies.splice(0);
    call(engine, QUERY, bytes(103, bytes(1, Buffer.from(sql))));
    console.log(JSON.stringify(rowsOf(engine.replies)));
  }
  process.exit(0);
})().catch((error) => {
  console.error(error.message ?? error);
  process.exit(1);
});
