import { Command } from 'commander'
import { advise, adviseVerb } from './verbs/advise.ts'
import { check, checkVerb } from './verbs/check.ts'
import type { VerbAction, Cli } from './cli.ts'
import { demo, demoVerb } from './verbs/demo.ts'
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
  webhooksAdd, webhooksDead, webhooksEdit, webhooksList, webhooksPause, webhooksRemove, webhooksReplay, webhooksResume, webhooksRotate, webhooksTest, webhooksVerbs,
} from './verbs/webhooks.ts'
import { whyNot, whyNotVerb } from './verbs/why-not.ts'
import { why, whyVerb } from './verbs/why.ts'

/** Every verb with what it does. `onExit` is told what the process should end with. */
export function createProgram(cli: Cli, onExit: (code: number) => void): Command {
  /** The command itself comes last and is not the verb's affair. */
  const does = <Given extends unknown[]>(command: Command, act: VerbAction<Given>): Command =>
    command.action(async (...given: unknown[]) => onExit((await act(cli, ...(given.slice(0, -1) as Given))) ?? 0))

  const program = new Command('tidemark')
    .description('Keeps a database of yours an exact, always-current copy of systems you do not own.')
    .version(ownVersion())
    .addHelpText('after', HELP_FOOTER)
    .hook('preAction', (_, action) => void (cli.targetFlags = formatTargetFlags(action.opts())))
  const state = new Command('state').summary('look at and move the stored state of a sync').description('Looks at and moves the stored state of a sync. Every move is audited.')
  const states = stateVerbs()
  state.addCommand(does(states.get, stateGet))
  state.addCommand(does(states.set, stateSet))
  state.addCommand(does(states.reset, stateReset))
  state.addCommand(does(states.log, stateLog))
  state.addCommand(does(states.rewind, stateRewind))
  state.addCommand(does(states.diff, stateDiff))
  state.addCommand(does(states.copy, stateCopy))
  state.addCommand(does(states.verify, stateVerify))

  const keys = new Command('keys').summary('the keys of the served feed, and those that states are sealed with').description('Makes, lists, rotates and ends the keys of the served feed; makes, rotates and retires those that states are sealed with.')
  const keyVerbs = keysVerbs()
  keys.addCommand(does(keyVerbs.create, keysCreate))
  keys.addCommand(does(keyVerbs.list, keysList))
  keys.addCommand(does(keyVerbs.revoke, keysRevoke))
  keys.addCommand(does(keyVerbs.rotate, keysRotate))
  keys.addCommand(does(keyVerbs.retire, keysRetire))
  keys.addCommand(does(keyVerbs.new, keysNew))

  const webhooks = new Command('webhooks').summary('where changes are sent to').description('Adds, lists, tries and removes the URLs that changes are sent to.')
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

  const tenants = new Command('tenants').summary('whose data is in this store').description('Lists the tenants of a store, and erases one.')
  const tenantVerbs = tenantsVerbs()
  tenants.addCommand(does(tenantVerbs.list, tenantsList))
  tenants.addCommand(does(tenantVerbs.delete, tenantsDelete))

  const quarantine = new Command('quarantine').summary('records that could not be landed').description('Shows the records that could not be landed, and tries them again.')
  const quarantines = quarantineVerbs()
  quarantine.addCommand(does(quarantines.list, quarantineList))
  quarantine.addCommand(does(quarantines.show, quarantineShow))
  quarantine.addCommand(does(quarantines.replay, quarantineReplay))

  const schema = new Command('schema').summary('the columns of a table, and how to change them').description('Shows the columns of a database, and changes them while records land.')
  const schemas = schemaVerbs()
  schema.addCommand(does(schemas.show, schemaShow))
  schema.addCommand(does(schemas.plan, schemaPlan))
  schema.addCommand(does(schemas.apply, schemaApply))

  const restate = new Command('restate').summary('a Restate server for development, and the workers it calls').description('Starts a Restate server for development, and tells a Restate server which workers to call.')
  const restates = restateVerbs()
  restate.addCommand(does(restates.up, restateUp))
  restate.addCommand(does(restates.register, restateRegister))

  const verbs = [
    does(initVerb(), init), does(demoVerb(), demo), does(adviseVerb(), advise), does(checkVerb(), check), does(discoverVerb(), discover), does(previewVerb(), preview), does(runVerb(), run), does(startVerb(), start), does(statusVerb(), status),
    does(queryVerb(), query), does(exportVerb(), exportRows), does(typesVerb(), types), does(whyVerb(), why), does(whyNotVerb(), whyNot), quarantine, schema, state, does(pauseVerb(), pause), does(resumeVerb(), resume), does(triggerVerb(), trigger), keys, webhooks, tenants, restate,
    does(mcpVerb(), mcp), does(doctorVerb(), doctor), does(simVerb(), sim),
  ]
  for (const verb of verbs) program.addCommand(verb)
  for (const command of listCommands(program)) {
    // Thrown instead of printed, so that they come out like every other error.
    command.exitOverride().configureOutput({ writeErr: () => {}, writeOut: (text) => cli.terminal.print(text.trimEnd()) })
  }
  return program
}

export function listCommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(listCommands)]
}

const HELP_FOOTER = `
Exit codes: 0 ok, 1 failed, 2 your input, 3 your environment, 130 interrupted.
Environment: TIDEMARK_STORE, TIDEMARK_TENANT, TIDEMARK_LOG (debug, info, warn, error, silent), TIDEMARK_KEY or TIDEMARK_KEY_FILE (what states are sealed with), NO_COLOR. All but the last are also read from .env beside the worker.`
