import { Command } from 'commander'
import { advise, adviseVerb } from './verbs/advise.ts'
import { check, checkVerb } from './verbs/check.ts'
import type { VerbAction, Cli } from './cli.ts'
import { demo, demoVerb } from './verbs/demo.ts'
import {
  destinationsList,
  destinationsPause,
  destinationsRemove,
  destinationsResume,
  destinationsResync,
  destinationsRun,
  destinationsVerbs,
} from './verbs/destinations.ts'
import { discover, discoverVerb } from './verbs/discover.ts'
import { doctor, doctorVerb } from './verbs/doctor.ts'
import { exportRows, exportVerb } from './verbs/export.ts'
import { init, initVerb } from './verbs/init.ts'
import { keysCreate, keysList, keysNew, keysRetire, keysRevoke, keysRotate, keysVerbs } from './verbs/keys.ts'
import { mcp, mcpVerb } from './verbs/mcp.ts'
import { ownVersion } from './kit/own-package.ts'
import { pause, pauseVerb } from './verbs/pause.ts'
import { preview, previewVerb } from './verbs/preview.ts'
import { quarantineList, quarantineReplay, quarantineShow, quarantineVerbs } from './verbs/quarantine.ts'
import { query, queryVerb } from './verbs/query.ts'
import { restateRegister, restateUp, restateVerbs } from './verbs/restate.ts'
import { resume, resumeVerb } from './verbs/resume.ts'
import { run, runVerb } from './verbs/run.ts'
import { schemaApply, schemaPlan, schemaShow, schemaVerbs } from './verbs/schema.ts'
import { sim, simVerb } from './verbs/sim.ts'
import { start, startVerb } from './verbs/start.ts'
import { stateDiff, stateVerbs, stateGet, stateLog } from './verbs/state.ts'
import { stateCopy, stateReset, stateRewind, stateSet } from './verbs/state-transitions.ts'
import { stateVerify } from './verbs/state-verify.ts'
import { status, statusVerb } from './verbs/status.ts'
import { formatTargetFlags } from './kit/target-flags.ts'
import { tenantsDelete, tenantsList, tenantsVerbs } from './verbs/tenants.ts'
import { trigger, triggerVerb } from './verbs/trigger.ts'
import { types, typesVerb } from './verbs/types.ts'
import {
  webhooksAdd,
  webhooksDead,
  webhooksEdit,
  webhooksList,
  webhooksPause,
  webhooksRemove,
  webhooksReplay,
  webhooksResume,
  webhooksRotate,
  webhooksTest,
  webhooksVerbs,
} from './verbs/webhooks.ts'
import { whyNot, whyNotVerb } from './verbs/why-not.ts'
import { why, whyVerb } from './verbs/why.ts'

/** Builds the command tree. `onExit` receives the exit code of the verb that ran. */
export function createProgram(cli: Cli, onExit: (code: number) => void): Command {
  /** commander passes the command itself as the last argument; verbs do not use it. */
  const does = <Values extends unknown[]>(command: Command, act: VerbAction<Values>): Command =>
    command.action(async (...values: unknown[]) => onExit((await act(cli, ...(values.slice(0, -1) as Values))) ?? 0))

  const program = new Command('tidemark')
    .description('Keeps your database an exact, current copy of systems you do not own.')
    .version(ownVersion())
    .addHelpText('after', HELP_FOOTER)
    .hook('preAction', (_, action) => void (cli.targetFlags = formatTargetFlags(action.opts())))
  const state = new Command('state')
    .summary('inspect and change the stored state of a sync')
    .description('Inspects and changes the stored state of a sync. Every change is recorded in the audit log.')
  const states = stateVerbs()
  state.addCommand(does(states.get, stateGet))
  state.addCommand(does(states.set, stateSet))
  state.addCommand(does(states.reset, stateReset))
  state.addCommand(does(states.log, stateLog))
  state.addCommand(does(states.rewind, stateRewind))
  state.addCommand(does(states.diff, stateDiff))
  state.addCommand(does(states.copy, stateCopy))
  state.addCommand(does(states.verify, stateVerify))

  const keys = new Command('keys')
    .summary('manage API keys and encryption keys')
    .description(
      'Creates, lists, rotates and revokes API keys; creates, rotates and retires the keys that encrypt stored state.',
    )
  const keyVerbs = keysVerbs()
  keys.addCommand(does(keyVerbs.create, keysCreate))
  keys.addCommand(does(keyVerbs.list, keysList))
  keys.addCommand(does(keyVerbs.revoke, keysRevoke))
  keys.addCommand(does(keyVerbs.rotate, keysRotate))
  keys.addCommand(does(keyVerbs.retire, keysRetire))
  keys.addCommand(does(keyVerbs.new, keysNew))

  const webhooks = new Command('webhooks')
    .summary('manage the webhooks that receive changes')
    .description('Adds, lists, tests, edits and removes the webhooks that receive changes.')
  const hookVerbs = webhooksVerbs()
  webhooks.addCommand(does(hookVerbs.add, webhooksAdd))
  webhooks.addCommand(does(hookVerbs.list, webhooksList))
  webhooks.addCommand(does(hookVerbs.edit, webhooksEdit))
  webhooks.addCommand(does(hookVerbs.test, webhooksTest))
  webhooks.addCommand(does(hookVerbs.pause, webhooksPause))
  webhooks.addCommand(does(hookVerbs.resume, webhooksResume))
  webhooks.addCommand(does(hookVerbs.replay, webhooksReplay))
  webhooks.addCommand(does(hookVerbs.dead, webhooksDead))
  webhooks.addCommand(does(hookVerbs.rotate, webhooksRotate))
  webhooks.addCommand(does(hookVerbs.remove, webhooksRemove))

  const destinations = new Command('destinations')
    .summary('manage the destinations that receive databases')
    .description('Lists, runs, pauses, reloads and removes the destinations that receive databases.')
  const destinationVerbs = destinationsVerbs()
  destinations.addCommand(does(destinationVerbs.list, destinationsList))
  destinations.addCommand(does(destinationVerbs.run, destinationsRun))
  destinations.addCommand(does(destinationVerbs.pause, destinationsPause))
  destinations.addCommand(does(destinationVerbs.resume, destinationsResume))
  destinations.addCommand(does(destinationVerbs.resync, destinationsResync))
  destinations.addCommand(does(destinationVerbs.remove, destinationsRemove))

  const tenants = new Command('tenants')
    .summary('list or erase the tenants of a store')
    .description('Lists the tenants of a store, or erases one.')
  const tenantVerbs = tenantsVerbs()
  tenants.addCommand(does(tenantVerbs.list, tenantsList))
  tenants.addCommand(does(tenantVerbs.delete, tenantsDelete))

  const quarantine = new Command('quarantine')
    .summary('inspect and replay quarantined records')
    .description('Shows the records that failed validation, and replays them.')
  const quarantines = quarantineVerbs()
  quarantine.addCommand(does(quarantines.list, quarantineList))
  quarantine.addCommand(does(quarantines.show, quarantineShow))
  quarantine.addCommand(does(quarantines.replay, quarantineReplay))

  const schema = new Command('schema')
    .summary('inspect and change the columns of a table')
    .description('Shows the columns of a database, and changes them while syncs keep running.')
  const schemas = schemaVerbs()
  schema.addCommand(does(schemas.show, schemaShow))
  schema.addCommand(does(schemas.plan, schemaPlan))
  schema.addCommand(does(schemas.apply, schemaApply))

  const restate = new Command('restate')
    .summary('run a Restate server or register a worker with one')
    .description('Starts a Restate server for development, or registers a worker with a Restate server.')
  const restates = restateVerbs()
  restate.addCommand(does(restates.up, restateUp))
  restate.addCommand(does(restates.register, restateRegister))

  const verbs = [
    does(initVerb(), init),
    does(demoVerb(), demo),
    does(adviseVerb(), advise),
    does(checkVerb(), check),
    does(discoverVerb(), discover),
    does(previewVerb(), preview),
    does(runVerb(), run),
    does(startVerb(), start),
    does(statusVerb(), status),
    does(queryVerb(), query),
    does(exportVerb(), exportRows),
    does(typesVerb(), types),
    does(whyVerb(), why),
    does(whyNotVerb(), whyNot),
    quarantine,
    schema,
    state,
    does(pauseVerb(), pause),
    does(resumeVerb(), resume),
    does(triggerVerb(), trigger),
    keys,
    webhooks,
    destinations,
    tenants,
    restate,
    does(mcpVerb(), mcp),
    does(doctorVerb(), doctor),
    does(simVerb(), sim),
  ]
  for (const verb of verbs) program.addCommand(verb)
  for (const command of listCommands(program)) {
    // Usage errors are thrown instead of printed, so that they are reported like every other error.
    command
      .exitOverride()
      .configureOutput({ writeErr: () => {}, writeOut: (text) => cli.terminal.print(text.trimEnd()) })
  }
  return program
}

export function listCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(listCommands)]
}

const HELP_FOOTER = `
Exit codes: 0 ok, 1 failed, 2 invalid input, 3 environment problem, 130 interrupted.
Environment: TIDEMARK_STORE, TIDEMARK_TENANT, TIDEMARK_LOG (debug, info, warn, error, silent),
TIDEMARK_KEY or TIDEMARK_KEY_FILE (encrypts stored state), NO_COLOR.
All but NO_COLOR are also read from .env in the folder of the worker.`
