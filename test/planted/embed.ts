import { inFile, type PlantedBug } from './planted-bug.ts'

const INSTANCE = ['test/embed/create-tidemark.test.ts']
const DESTINATIONS = ['test/embed/destinations.test.ts']
const HOLDERS = ['test/platform/lease-holder.test.ts']
const HANDLER = ['test/embed/handler.test.ts']

/** The instance inside a program, and its mounted API. */
export const EMBED_BUGS: readonly PlantedBug[] = [
  ...inFile('src/platform/lease-holder.ts', HOLDERS, [
    ['the lease of a killed run of a program is waited for', '(?:#(?:run)?\\d+)?$', '(?:#\\d+)?$'],
    ['the lease of a killed console action is waited for', 'cli|console|webhook', 'cli|webhook'],
    ['the services of a process have one name', '++serviceCount === 1 ?', 'serviceCount++ >= 0 ?'],
  ]),
  ...inFile('src/embed/destinations.ts', DESTINATIONS, [
    ['removing a destination always deletes its rows', 'if (options.dropRows === true) {', "if (name !== '') {"],
    [
      'a load of one database loads all',
      "{ kind: 'resync', databases }",
      "{ kind: 'resync', databases: plan.databases }",
    ],
  ]),
  ...inFile('src/destinations/loop/manage-destinations.ts', DESTINATIONS, [
    ['an unknown database is requested from a destination', 'if (unknown !== undefined)\n', 'if (unknown === null)\n'],
    ['rows of a removed destination stay', 'for (const database of databases) await session.remove(database)', ''],
  ]),
  ...inFile('src/embed/serve-api.ts', HANDLER, [
    ['a passed-on request needs no key', 'version, keysOnly: true', 'version, keysOnly: false'],
  ]),
  ...inFile('src/embed/mount-path.ts', HANDLER, [
    ['paths outside of the prefix are served', 'return isStripped ? url : null', 'return url'],
  ]),
  ...inFile('src/embed/fetch-handler.ts', HANDLER, [
    ['a reader that leaves keeps its stream', "body.once('close', () => raw.destroy())", ''],
    ['a body has no limit', 'if (bytes >= BODY_MAX_BYTES) break', 'if (bytes < 0) break'],
  ]),
  ...inFile('src/embed/create-tidemark.ts', INSTANCE, [
    [
      'stop does not end a run',
      'const signal = AbortSignal.any([this.#stopping.signal,',
      'const signal = AbortSignal.any([',
    ],
    [
      'every tenant is allowed',
      "if (tenants !== 'all' && !tenants.includes(tenant))",
      "if (tenants === 'all' && !tenants.includes(tenant))",
    ],
    ['the rows of a query are not checked', 'if (problem !== null)', 'if (problem === undefined)'],
    ['a failure to open is kept', '() => (this.#store = null)', '() => {}'],
    [
      'an open store is closed',
      "if (typeof this.#options.store === 'string') await store?.close()",
      'await store?.close()',
    ],
    ['a tick does not end', 'ports.clock.now() < endsAt', 'true'],
    ['a tick returns before the work is done', '(isComplete = service.isIdle())', '(isComplete = true)'],
  ]),
  ...inFile('src/embed/events.ts', INSTANCE, [
    ['a listener that throws fails the run', 'this.#onListenerError(name, error)', 'throw error'],
  ]),
  ...inFile('src/embed/create-runtime.ts', INSTANCE, [
    ['secrets of the program are not masked', 'registerNamedSecret(name, value)', ''],
  ]),
  ...inFile('src/runner/run-with-backfill.ts', INSTANCE, [
    ['the delta runs without its backfill', 'if (isBackfillNeeded(checkpoint))', 'if (!isBackfillNeeded(checkpoint))'],
  ]),
]
