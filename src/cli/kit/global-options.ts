import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { Option, type Command } from 'commander'
import { SyncError } from '../../contract/index.ts'
import { registerEnvironmentSecrets } from '../../redaction/known-secrets.ts'

interface GlobalFlags {
  readonly envFile?: string
  readonly debug?: true
  readonly verbose?: true
  readonly quiet?: true
}

/** Options of every command, before or after its name. */
export function addGlobalOptions(program: Command): Command {
  return program
    .option('--env-file <file>', 'read environment variables from this file too')
    .addOption(new Option('--quiet', 'print results and errors only').conflicts(['verbose', 'debug']))
    .addOption(new Option('--verbose', 'log what happens').conflicts('debug'))
    .option('--debug', 'log every request and every decision')
}

/**
 * Applies the global options to the environment, which everything else reads. Variables that are set already stay, and
 * `.env` of the worker's folder comes last.
 */
export function applyGlobalOptions(
  program: Command,
  args: readonly string[],
  environment: Record<string, string | undefined>,
): void {
  program.parseOptions([...args])
  const { envFile, debug, verbose, quiet } = program.opts<GlobalFlags>()
  if (envFile !== undefined)
    for (const [name, value] of Object.entries(readEnvironmentFile(envFile))) environment[name] ??= value
  registerEnvironmentSecrets(environment)
  if (debug === true) environment['TIDEMARK_LOG'] = 'debug'
  else if (verbose === true) environment['TIDEMARK_LOG'] = 'info'
  else if (quiet === true) environment['TIDEMARK_LOG'] = 'error'
}

function readEnvironmentFile(file: string): NodeJS.Dict<string> {
  try {
    return parseEnv(readFileSync(file, 'utf8').replace(/^\uFEFF/, ''))
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error'
    throw new SyncError('ARGUMENT_INVALID', `The file of --env-file, ${resolve(file)}, cannot be read (${code}).`, {
      cause,
    })
  }
}
