'use strict'
// Keeps what the loader of worker files (jiti) makes of a text. The tests load the same few workers a thousand times, and
// the product keeps no such cache: loading Babel and transforming one worker is a third of the processor time of a
// command. Loaded with `--require` by every process that a test starts (vitest.config.ts).
const { createHash } = require('node:crypto')
const { mkdirSync, readFileSync, renameSync, writeFileSync } = require('node:fs')
const Module = require('node:module')
const { basename, dirname, join, sep } = require('node:path')
const { pathToFileURL } = require('node:url')

const manifest = require.resolve('jiti/package.json')
const transformer = join(dirname(manifest), 'dist/babel.cjs')
const cache = join(__dirname, '../../node_modules/.cache/tidemark-transforms', require(manifest).version)
/** The folder of a file ends up in the code through import.meta; each project of a test has a folder of its own. */
const PLACEHOLDER = '/tidemark-transform-placeholder'

const memo = new Module(transformer)
memo.filename = transformer
memo.loaded = true
memo.exports = transform
if (Module._cache[transformer] === undefined) Module._cache[transformer] = memo

function transform(options) {
  const { filename } = options
  // Paths that look different in code or in an address are left to the loader.
  if (typeof filename !== 'string' || sep !== '/' || pathToFileURL(filename).href !== `file://${filename}`)
    return load()(options)
  const general = { ...options, filename: `${PLACEHOLDER}/${basename(filename)}` }
  const kept = join(cache, createHash('sha256').update(JSON.stringify(general)).digest('hex'))
  const code = read(kept)
  if (code !== null) return { code: code.replaceAll(PLACEHOLDER, dirname(filename)) }
  const result = load()(general)
  // An error names the file.
  if (result.error !== undefined) return load()(options)
  write(kept, result.code)
  return { ...result, code: result.code.replaceAll(PLACEHOLDER, dirname(filename)) }
}

function read(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return null
  }
}

/** A process without write access keeps nothing. */
function write(file, code) {
  try {
    mkdirSync(cache, { recursive: true })
    writeFileSync(`${file}.${process.pid}`, code)
    renameSync(`${file}.${process.pid}`, file)
  } catch {
    // The next process transforms the text again.
  }
}

let loaded
function load() {
  if (loaded !== undefined) return loaded
  delete Module._cache[transformer]
  loaded = require(transformer)
  Module._cache[transformer] = memo
  return loaded
}
