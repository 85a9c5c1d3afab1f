#!/usr/bin/env node
import { loadStoreModule } from '../stores/load-store-module.ts'
import { withEnvFile } from '../config/settings.ts'
import { classifyError } from '../engine/classify-error.ts'
import { flushTelemetry } from '../platform/open-telemetry.ts'
import { reportStrayException } from '../platform/stray-exceptions.ts'
import { registerEnvironmentSecrets } from '../redaction/known-secrets.ts'
import { claimStdout } from './kit/claim-stdout.ts'
import type { Cli } from './cli.ts'
import { exitCodeOf } from './kit/exit-code.ts'
import { applyGlobalOptions } from './kit/global-options.ts'
import { createProgram, isVerb } from './program.ts'
import { reportError } from './kit/report-error.ts'
import { listenForStop } from './kit/stop-signals.ts'
import { Terminal } from './kit/terminal.ts'

const { argv, env, stderr } = process
const { stream, writable } = claimStdout(process)
const terminal = new Terminal({
  stdout: stream,
  stderr,
  environment: env,
  json: argv.includes('--json'),
  quiet: argv.includes('--quiet'),
})
registerEnvironmentSecrets(env)
let stopping: AbortSignal | undefined
const cli: Cli = {
  terminal,
  stdout: writable,
  environment: env,
  targetFlags: [],
  folder: process.cwd(),
  listenForStop: (notice) => (stopping ??= listenForStop(terminal, exitCodeOf('CANCELLED'), notice)),
}

process.on('uncaughtException', (error) => {
  // Node would print the whole error, including any secret its message quotes.
  if (!reportStrayException(error)) void exitProcess(reportError(cli, classifyError(error), 'tidemark --help'))
})
let exitCode = 0
const [, , verb] = argv
try {
  const program = await createProgram(cli, (code) => (exitCode = code), verb)
  if (argv.length === 2) program.help()
  applyGlobalOptions(program, argv.slice(2), env)
  await loadStoreModule(withEnvFile(env, cli.folder), cli.folder)
  await program.parseAsync(argv)
} catch (error) {
  exitCode = reportError(cli, error, isVerb(verb) ? `tidemark ${verb} --help` : 'tidemark --help')
}
await exitProcess(exitCode)

/** Exits explicitly: a timer or connection left open by a connector would keep the process running. */
async function exitProcess(code: number): Promise<never> {
  await flushTelemetry()
  await terminal.drain()
  process.exit(code)
}
