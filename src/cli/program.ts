import { Command } from 'commander'
import type { Cli, VerbAction } from './cli.ts'
import { ownVersion } from '../platform/own-version.ts'
import { addGlobalOptions } from './kit/global-options.ts'
import { formatTargetFlags } from './kit/target-flags.ts'
import { VERBS } from './verbs.ts'

/** Builds the command tree with one verb, or with all of them. `onExit` receives the exit code of the verb that ran. */
export async function createProgram(cli: Cli, onExit: (code: number) => void, verb?: string): Promise<Command> {
  /** commander passes the command itself as the last argument; verbs do not use it. */
  const bind = <Values extends unknown[]>(command: Command, act: VerbAction<Values>): Command =>
    command.action(async (...values: unknown[]) => onExit((await act(cli, ...(values.slice(0, -1) as Values))) ?? 0))
  const program = addGlobalOptions(new Command('tidemark'))
    .description('Keeps your database an exact, current copy of systems you do not own.')
    .version(ownVersion())
    .addHelpText('after', HELP_FOOTER)
    .hook('preAction', (_, action) => void (cli.targetFlags = formatTargetFlags(action.opts())))
  const isForVersion = verb === '--version' || verb === '-V'
  const loaders = Object.entries(VERBS).filter(([name]) => name === verb || (!isVerb(verb) && !isForVersion))
  for (const command of await Promise.all(loaders.map(([, load]) => load(bind)))) program.addCommand(command)
  for (const command of listCommands(program)) {
    // Usage errors are thrown instead of printed, so that they are reported like every other error.
    command
      .exitOverride()
      .configureOutput({ writeErr: () => {}, writeOut: (text) => cli.terminal.print(text.trimEnd()) })
  }
  return program
}

export function isVerb(name: string | undefined): name is string {
  return name !== undefined && Object.hasOwn(VERBS, name)
}

export function listCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(listCommands)]
}

const HELP_FOOTER = `
Exit codes: 0 ok, 1 failed, 2 invalid input, 3 environment problem, 130 interrupted.
Environment: TIDEMARK_STORE, TIDEMARK_TENANT, TIDEMARK_LOG (debug, info, warn, error, silent),
TIDEMARK_KEY or TIDEMARK_KEY_FILE (encrypts stored state), NO_COLOR.
All but NO_COLOR are also read from .env in the folder of the worker.`
