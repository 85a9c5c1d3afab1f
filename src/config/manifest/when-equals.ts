import type { JsonSchema } from '../../worker/schema.ts'

/** A schema that applies only if the named field has the given value. */
export function whenEquals(name: string, value: string, schema: JsonSchema): JsonSchema {
  // oxlint-disable-next-line unicorn/no-thenable
  return { if: { required: [name], properties: { [name]: { const: value } } }, then: schema }
}
