import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'

/** A validator as Fastify calls it. */
interface RequestValidator {
  (data: unknown): boolean
  errors?: ErrorObject[] | null
}

/**
 * Compiles a schema with the first request that it validates. Fastify compiles those of every route before it serves the
 * first one, which takes as long as the rest of the start.
 */
export function createValidatorCompiler(): (route: { readonly schema: unknown }) => RequestValidator {
  const ajv = new Ajv({ coerceTypes: true, useDefaults: true, removeAdditional: false, strict: false })
  return ({ schema }) => {
    let compiled: ValidateFunction | undefined
    const validate: RequestValidator = (data) => {
      compiled ??= ajv.compile(schema as object)
      const isValid = compiled(data)
      validate.errors = compiled.errors ?? null
      return isValid
    }
    return validate
  }
}
