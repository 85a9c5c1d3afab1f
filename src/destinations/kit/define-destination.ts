import type { Destination, ScalarType } from '../../contract/index.ts'
import type { ObjectSchema, SchemaValue } from '../../values/config-schema.ts'

/**
 * Declares a destination: the default export of `src/destinations/<name>/descriptor.ts`. Manifests, `destinations add`,
 * the reference page and the import table are derived from it. The type of `config` follows from its schema.
 *
 * The registry imports every descriptor, so a descriptor imports `destination.ts` only inside `create`.
 */
export function defineDestination<const Name extends string, Config extends ObjectSchema>(
  destination: DestinationDefinition<Name, Config>,
): DestinationDescriptor<Name> {
  return destination
}

interface DestinationDefinition<Name extends string, Config extends ObjectSchema> extends DestinationFacts<Name> {
  readonly config: Config
  create(config: SchemaValue<Config>, project: DestinationProject): Promise<Destination>
}

/** A destination without the type of its config. The config was validated against the schema. */
export interface DestinationDescriptor<Name extends string = string> extends DestinationFacts<Name> {
  /** The schema of `config` in a manifest. Secrets are written as `${NAME}`. */
  readonly config: ObjectSchema
  /** Imports the code of the destination. Opens no connection. */
  create(config: unknown, project: DestinationProject): Promise<Destination>
}

interface DestinationFacts<Name extends string> {
  /** The name of the folder, the import path and the connector in a manifest. */
  readonly name: Name
  /** The name of the system in prompts and documentation. */
  readonly title: string
  /** The packages that its files import, also those of Node.js. The import table allows no others. */
  readonly packages: readonly string[]
  /** The optional package that a user installs, with its range: `{ mysql2: '^3' }`. */
  readonly install?: Readonly<Record<string, string>>
  /** The column for each type of the store; `list` is an array of any type. */
  readonly types: Readonly<Record<ScalarType | 'list', string>>
  /** How names and values that do not fit are stored: `[what does not fit, how it is stored]`. */
  readonly limits: ReadonlyArray<readonly [what: string, policy: string]>
}

/** The project that uses the destination. Relative paths start at its folder. */
export interface DestinationProject {
  readonly folder: string
}
