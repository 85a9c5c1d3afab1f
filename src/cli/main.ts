#!/usr/bin/env node
import type { Cli } from './cli.ts'
import { exitCodeOf } from './exit-code.ts'
import { createProgram } from './program.ts'
import { reportError } from './report-error.ts'
import { listenForStop } from './stop-signals.ts'
import { Terminal } from './terminal.ts'

const { argv, env, stdout, stderr } = process
const terminal = new Terminal({ stdout, stderr, environment: env, json: argv.includes('--json') })
// Standard output is the command's answer; what a worker's own code logs is no part of it.
globalThis.console = new console.Console(stderr)
let stopping: AbortSignal | undefined
const cli: Cli = {
  terminal, environment: env, folder: process.cwd(),
  listenForStop: (words) => (stopping ??= listenForStop(terminal, exitCodeOf('CANCELLED'), words)),
}

let exitCode = 0
const program = createProgram(cli, (code) => (exitCode = code))
try {
  if (argv.length === 2) program.help()
  await program.parseAsync(argv)
} catch (error) {
  const verb = program.commands.find((command) => command.name() === argv[2])
  exitCode = reportError(cli, error, verb === undefined ? 'tidemark --help' : `tidemark ${verb.name()} --help`)
}
await terminal.drain()
// Not left to run out: a connector may have left a timer or a connection behind.
process.exit(exitCode)
