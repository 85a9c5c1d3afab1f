/**
 * Types by name. A field declares its type and arguments as SDL does, so that a test can compare them with the
 * vendor's.
 */
export type Schema<C> = Readonly<Record<string, ObjectType<C>>>

export interface ObjectType<C> {
  readonly kind: 'object' | 'interface'
  readonly implements?: readonly string[]
  readonly fields: Readonly<Record<string, Field<C>>>
}

export type Args = Readonly<Record<string, unknown>>
export type Parent = Readonly<Record<string, unknown>>

export interface Field<C> {
  readonly type: string
  readonly args?: Readonly<Record<string, string>>
  /** Defaults to the parent's property of that name. */
  readonly resolve?: (parent: Parent, args: Args, context: C) => unknown
}

/** The name inside `[Issue!]!`. */
export function parseTypeName(type: string): string {
  return type.replaceAll(/[[\]!]/g, '')
}

/** One field fails and becomes null; the rest of the response is kept. */
export class FieldError extends Error {
  readonly type: string | undefined

  constructor(message: string, type?: string) {
    super(message)
    this.type = type
  }
}
