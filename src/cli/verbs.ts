import { Command } from 'commander'
import type { VerbAction } from './cli.ts'

/** Sets the action of a command. */
export type BindAction = <Values extends unknown[]>(command: Command, act: VerbAction<Values>) => Command

/**
 * The verbs in the order of the help. Each is imported when it is needed: loading all of them takes longer than most
 * verbs run.
 */
export const VERBS: Readonly<Record<string, (bind: BindAction) => Promise<Command>>> = {
  init: async (bind) => {
    const { init, initVerb } = await import('./verbs/init.ts')
    return bind(initVerb(), init)
  },
  demo: async (bind) => {
    const { demo, demoVerb } = await import('./verbs/demo.ts')
    return bind(demoVerb(), demo)
  },
  advise: async (bind) => {
    const { advise, adviseVerb } = await import('./verbs/advise.ts')
    return bind(adviseVerb(), advise)
  },
  check: async (bind) => {
    const { check, checkVerb } = await import('./verbs/check.ts')
    return bind(checkVerb(), check)
  },
  discover: async (bind) => {
    const { discover, discoverVerb } = await import('./verbs/discover.ts')
    return bind(discoverVerb(), discover)
  },
  probe: async (bind) => {
    const { probe, probeVerb } = await import('./verbs/probe.ts')
    return bind(probeVerb(), probe)
  },
  preview: async (bind) => {
    const { preview, previewVerb } = await import('./verbs/preview.ts')
    return bind(previewVerb(), preview)
  },
  run: async (bind) => {
    const { run, runVerb } = await import('./verbs/run.ts')
    return bind(runVerb(), run)
  },
  backfill: async (bind) => {
    const { backfill, backfillVerb } = await import('./verbs/backfill.ts')
    return bind(backfillVerb(), backfill)
  },
  verify: async (bind) => {
    const { verify, verifyVerb } = await import('./verbs/verify.ts')
    return bind(verifyVerb(), verify)
  },
  start: async (bind) => {
    const { start, startVerb } = await import('./verbs/start.ts')
    return bind(startVerb(), start)
  },
  status: async (bind) => {
    const { status, statusVerb } = await import('./verbs/status.ts')
    return bind(statusVerb(), status)
  },
  cycles: async (bind) => {
    const { cycles, cyclesVerb } = await import('./verbs/cycles.ts')
    return bind(cyclesVerb(), cycles)
  },
  query: async (bind) => {
    const { query, queryVerb } = await import('./verbs/query.ts')
    return bind(queryVerb(), query)
  },
  export: async (bind) => {
    const { exportRows, exportVerb } = await import('./verbs/export.ts')
    return bind(exportVerb(), exportRows)
  },
  types: async (bind) => {
    const { types, typesVerb } = await import('./verbs/types.ts')
    return bind(typesVerb(), types)
  },
  why: async (bind) => {
    const { why, whyVerb } = await import('./verbs/why.ts')
    return bind(whyVerb(), why)
  },
  'why-not': async (bind) => {
    const { whyNot, whyNotVerb } = await import('./verbs/why-not.ts')
    return bind(whyNotVerb(), whyNot)
  },
  quarantine: async (bind) => {
    const { quarantineList, quarantineReplay, quarantineShow, quarantineVerbs } = await import('./verbs/quarantine.ts')
    const verbs = quarantineVerbs()
    return new Command('quarantine')
      .summary('inspect and replay quarantined records')
      .description('Shows the records that failed validation, and replays them.')
      .addCommand(bind(verbs.list, quarantineList))
      .addCommand(bind(verbs.show, quarantineShow))
      .addCommand(bind(verbs.replay, quarantineReplay))
  },
  schema: async (bind) => {
    const { schemaApply, schemaPlan, schemaShow, schemaVerbs } = await import('./verbs/schema.ts')
    const verbs = schemaVerbs()
    return new Command('schema')
      .summary('inspect and change the columns of a table')
      .description('Shows the columns of a database, and changes them while syncs keep running.')
      .addCommand(bind(verbs.show, schemaShow))
      .addCommand(bind(verbs.plan, schemaPlan))
      .addCommand(bind(verbs.apply, schemaApply))
  },
  columns: async (bind) => {
    const { columnsApply, columnsPlan, columnsVerbs } = await import('./verbs/columns.ts')
    const verbs = columnsVerbs()
    return new Command('columns')
      .summary('apply changed column rules to stored rows')
      .description('Rewrites stored rows after the column rules of a database have changed.')
      .addCommand(bind(verbs.plan, columnsPlan))
      .addCommand(bind(verbs.apply, columnsApply))
  },
  state: async (bind) => {
    const [
      { stateDiff, stateGet, stateLog, stateVerbs },
      { stateCopy, stateImport, stateReset, stateRewind, stateSet },
      { stateVerify },
    ] = await Promise.all([
      import('./verbs/state.ts'),
      import('./verbs/state-transitions.ts'),
      import('./verbs/state-verify.ts'),
    ])
    const verbs = stateVerbs()
    return new Command('state')
      .summary('inspect and change the stored state of a sync')
      .description('Inspects and changes the stored state of a sync. Every change is recorded in the audit log.')
      .addCommand(bind(verbs.get, stateGet))
      .addCommand(bind(verbs.set, stateSet))
      .addCommand(bind(verbs.reset, stateReset))
      .addCommand(bind(verbs.log, stateLog))
      .addCommand(bind(verbs.rewind, stateRewind))
      .addCommand(bind(verbs.diff, stateDiff))
      .addCommand(bind(verbs.copy, stateCopy))
      .addCommand(bind(verbs.import, stateImport))
      .addCommand(bind(verbs.verify, stateVerify))
  },
  pause: async (bind) => {
    const { pause, pauseVerb } = await import('./verbs/pause.ts')
    return bind(pauseVerb(), pause)
  },
  resume: async (bind) => {
    const { resume, resumeVerb } = await import('./verbs/resume.ts')
    return bind(resumeVerb(), resume)
  },
  trigger: async (bind) => {
    const { trigger, triggerVerb } = await import('./verbs/trigger.ts')
    return bind(triggerVerb(), trigger)
  },
  keys: async (bind) => {
    const { keysCreate, keysList, keysNew, keysRetire, keysRevoke, keysRotate, keysVerbs } =
      await import('./verbs/keys.ts')
    const verbs = keysVerbs()
    return new Command('keys')
      .summary('manage API keys and encryption keys')
      .description(
        'Creates, lists, rotates and revokes API keys; creates, rotates and retires the keys that encrypt stored state.',
      )
      .addCommand(bind(verbs.create, keysCreate))
      .addCommand(bind(verbs.list, keysList))
      .addCommand(bind(verbs.revoke, keysRevoke))
      .addCommand(bind(verbs.rotate, keysRotate))
      .addCommand(bind(verbs.retire, keysRetire))
      .addCommand(bind(verbs.new, keysNew))
  },
  webhooks: async (bind) => {
    const {
      webhooksAdd,
      webhooksFailed,
      webhooksEdit,
      webhooksList,
      webhooksPause,
      webhooksRemove,
      webhooksReplay,
      webhooksResume,
      webhooksRotate,
      webhooksTest,
      webhooksVerbs,
    } = await import('./verbs/webhooks.ts')
    const verbs = webhooksVerbs()
    return new Command('webhooks')
      .summary('manage the webhooks that receive changes')
      .description('Adds, lists, tests, edits and removes the webhooks that receive changes.')
      .addCommand(bind(verbs.add, webhooksAdd))
      .addCommand(bind(verbs.list, webhooksList))
      .addCommand(bind(verbs.edit, webhooksEdit))
      .addCommand(bind(verbs.test, webhooksTest))
      .addCommand(bind(verbs.pause, webhooksPause))
      .addCommand(bind(verbs.resume, webhooksResume))
      .addCommand(bind(verbs.replay, webhooksReplay))
      .addCommand(bind(verbs.failed, webhooksFailed))
      .addCommand(bind(verbs.dead, webhooksFailed), { hidden: true })
      .addCommand(bind(verbs.rotate, webhooksRotate))
      .addCommand(bind(verbs.remove, webhooksRemove))
  },
  connections: async (bind) => {
    const {
      connectionsAdd,
      connectionsDisable,
      connectionsEnable,
      connectionsList,
      connectionsReauthorize,
      connectionsRemove,
      connectionsRevoke,
      connectionsShow,
      connectionsTest,
      connectionsVerbs,
    } = await import('./verbs/connections.ts')
    const verbs = connectionsVerbs()
    return new Command('connections')
      .summary('manage the accounts that tenants connected')
      .description(
        'Adds, tests, authorizes, stops and removes the connections of a tenant. Credentials are never shown.',
      )
      .addCommand(bind(verbs.add, connectionsAdd))
      .addCommand(bind(verbs.list, connectionsList))
      .addCommand(bind(verbs.show, connectionsShow))
      .addCommand(bind(verbs.test, connectionsTest))
      .addCommand(bind(verbs.reauthorize, connectionsReauthorize))
      .addCommand(bind(verbs.disable, connectionsDisable))
      .addCommand(bind(verbs.enable, connectionsEnable))
      .addCommand(bind(verbs.revoke, connectionsRevoke))
      .addCommand(bind(verbs.remove, connectionsRemove))
  },
  destinations: async (bind) => {
    const [{ destinationsAdd, destinationsAddVerb }, verbModule] = await Promise.all([
      import('./verbs/destinations-add.ts'),
      import('./verbs/destinations.ts'),
    ])
    const {
      destinationsList,
      destinationsPause,
      destinationsRemove,
      destinationsResume,
      destinationsResync,
      destinationsRun,
      destinationsVerbs,
    } = verbModule
    const verbs = destinationsVerbs()
    return new Command('destinations')
      .summary('manage the destinations that receive databases')
      .description('Adds, lists, runs, pauses, reloads and removes the destinations that receive databases.')
      .addCommand(bind(destinationsAddVerb(), destinationsAdd))
      .addCommand(bind(verbs.list, destinationsList))
      .addCommand(bind(verbs.run, destinationsRun))
      .addCommand(bind(verbs.pause, destinationsPause))
      .addCommand(bind(verbs.resume, destinationsResume))
      .addCommand(bind(verbs.resync, destinationsResync))
      .addCommand(bind(verbs.remove, destinationsRemove))
  },
  tenants: async (bind) => {
    const { tenantsDelete, tenantsList, tenantsVerbs } = await import('./verbs/tenants.ts')
    const verbs = tenantsVerbs()
    return new Command('tenants')
      .summary('list or erase the tenants of a store')
      .description('Lists the tenants of a store, or erases one.')
      .addCommand(bind(verbs.list, tenantsList))
      .addCommand(bind(verbs.delete, tenantsDelete))
  },
  restate: async (bind) => {
    const { restateRegister, restateUp, restateVerbs } = await import('./verbs/restate.ts')
    const verbs = restateVerbs()
    return new Command('restate')
      .summary('run a Restate server or register a worker with one')
      .description('Starts a Restate server for development, or registers a worker with a Restate server.')
      .addCommand(bind(verbs.up, restateUp))
      .addCommand(bind(verbs.register, restateRegister))
  },
  mcp: async (bind) => {
    const { mcp, mcpVerb } = await import('./verbs/mcp.ts')
    return bind(mcpVerb(), mcp)
  },
  doctor: async (bind) => {
    const { doctor, doctorVerb } = await import('./verbs/doctor.ts')
    return bind(doctorVerb(), doctor)
  },
  docs: async (bind) => {
    const { docs, docsVerb } = await import('./verbs/docs.ts')
    return bind(docsVerb(), docs)
  },
  completion: async (bind) => {
    const { completion, completionVerb } = await import('./verbs/completion.ts')
    return bind(completionVerb(), completion(loadCommands))
  },
  sim: async (bind) => {
    const { sim, simVerb } = await import('./verbs/sim.ts')
    return bind(simVerb(), sim)
  },
}

/** All commands, without their actions. */
function loadCommands(): Promise<Command[]> {
  return Promise.all(Object.values(VERBS).map((load) => load((command) => command)))
}
