#!/usr/bin/env node
import { Writable } from 'node:stream'
import { classify } from '../engine/classify.ts'
import { flushTelemetry } from '../platform/open-telemetry.ts'
import { maskSecrets, noteEnvironment } from '../redaction/known-secrets.ts'
import type { Cli } from './cli.ts'
import { exitCodeOf } from './exit-code.ts'
import { createProgram } from './program.ts'
import { reportError } from './report-error.ts'
import { listenForStop } from './stop-signals.ts'
import { Terminal } from './terminal.ts'

const { argv, env, stdout, stderr } = process
const terminal = new Terminal({ stdout, stderr, environment: env, json: argv.includes('--json') })
noteEnvironment(env)
// Standard output is the command's answer; what a worker's own code logs is no part of it, and no place for a secret either.
globalThis.console = new console.Console(new Writable({ decodeStrings: false, write(text: string, _, done) {
  stderr.write(maskSecrets(text))
  done()
} }))
let stopping: AbortSignal | undefined
const cli: Cli = {
  terminal, environment: env, folder: process.cwd(),
  listenForStop: (words) => (stopping ??= listenForStop(terminal, exitCodeOf('CANCELLED'), words)),
}

// A timer of a connector's own that throws ends the process; what Node would print of it is the whole error.
process.on('uncaughtException', (error) => void end(reportError(cli, classify(error), 'tidemark --help')))
let exitCode = 0
const program = createProgram(cli, (code) => (exitCode = code))
try {
  if (argv.length === 2) program.help()
  await program.parseAsync(argv)
} catch (error) {
  const verb = program.commands.find((command) => command.name() === argv[2])
  exitCode = reportError(cli, error, verb === undefined ? 'tidemark --help' : `tidemark ${verb.name()} --help`)
}
await end(exitCode)

/** Not left to run out: a connector may have left a timer or a connection behind. */
async function end(code: number): Promise<never> {
  await flushTelemetry()
  await terminal.drain()
  process.exit(code)
}
