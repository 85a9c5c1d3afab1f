import type { Field, ObjectType, Schema } from './schema.ts'

/** The type of `pageInfo`, as Relay defines it. */
export const PAGE_INFO: ObjectType<unknown> = {
  kind: 'object',
  fields: {
    hasNextPage: { type: 'Boolean!' },
    hasPreviousPage: { type: 'Boolean!' },
    startCursor: { type: 'String' },
    endCursor: { type: 'String' },
  },
}

export interface ConnectionTypeOptions {
  /** Whether the vendor declares lists and nodes as non-null. */
  readonly isNonNull: boolean
  /** Fields of the connection in addition to those of Relay. */
  readonly fields?: Readonly<Record<string, Field<unknown>>>
}

/** The types `<name>Connection` and `<name>Edge`. */
export function createConnectionTypes(name: string, { isNonNull, fields }: ConnectionTypeOptions): Schema<unknown> {
  const list = (type: string): string => (isNonNull ? `[${type}!]!` : `[${type}]`)
  return {
    [`${name}Connection`]: {
      kind: 'object',
      fields: {
        nodes: { type: list(name) },
        edges: { type: list(`${name}Edge`) },
        pageInfo: { type: 'PageInfo!' },
        ...fields,
      },
    },
    [`${name}Edge`]: {
      kind: 'object',
      fields: { cursor: { type: 'String!' }, node: { type: isNonNull ? `${name}!` : name } },
    },
  }
}
