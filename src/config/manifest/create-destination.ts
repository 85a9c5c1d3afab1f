import { Ajv } from 'ajv'
import { SyncError } from '../../contract/index.ts'
import type { DestinationDescriptor } from '../../destinations/kit/define-destination.ts'
import { DESTINATIONS } from '../../destinations/registry.ts'
import { required } from '../../values/required.ts'
import type { DeclaredDestination } from '../../worker/destination-options.ts'
import { Worker } from '../../worker/worker.ts'
import type { Environment } from '../settings.ts'
import type { ManifestDestination } from './manifest-file.ts'
import { DESTINATION_SCHEMA } from './schema.ts'

/** Declares the destination of an entry on a worker. `config` has the values of its secrets. */
export async function declareDestination(
  worker: Worker,
  { name, connector, databases, mode, schedule, children }: ManifestDestination,
  config: unknown,
  folder: string,
): Promise<void> {
  const descriptor: DestinationDescriptor = DESTINATIONS[connector]
  worker.destination(name, await descriptor.create(config, { folder }), {
    ...(databases !== undefined && { databases }),
    ...(mode !== undefined && { mode }),
    ...(schedule !== undefined && { schedule }),
    ...(children !== undefined && { children }),
  })
}

/** Creates the destination of an entry that is not in a manifest, with the same checks. */
export async function createDestination(
  entry: ManifestDestination,
  databases: readonly string[],
  environment: Environment,
  folder: string,
): Promise<DeclaredDestination> {
  const validate = new Ajv({ strict: false }).compile(DESTINATION_SCHEMA)
  const [error] = validate(entry) ? [] : (validate.errors ?? [])
  if (error !== undefined)
    throw new SyncError(
      'ARGUMENT_INVALID',
      `${error.instancePath.slice(1).replaceAll('/', '.')}: ${error.message ?? 'it is not valid'}. Nothing was changed.`,
    )
  const worker = new Worker()
  for (const database of databases) worker.database(database)
  await declareDestination(worker, entry, fillVariables(entry.config, environment), folder)
  return required(worker.destinations()[0], 'The new destination')
}

function fillVariables(value: unknown, environment: Environment): unknown {
  if (typeof value === 'string')
    return value.replaceAll(/\$\{(\w+)\}/g, (_, variable: string) => {
      const found = environment[variable]
      if (found === undefined || found === '') throw new SyncError('SECRET_MISSING', `${variable} is not set.`)
      return found
    })
  if (Array.isArray(value)) return value.map((item) => fillVariables(item, environment))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, fillVariables(field, environment)]))
}
