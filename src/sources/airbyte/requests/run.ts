import { SyncError, type JsonObject, type JsonValue, type SyncContext } from '../../../contract/index.ts'
import { Interpolation, toPython, type Names } from '../jinja/interpolation.ts'
import { print } from '../jinja/printing.ts'
import { isDict, PyFloat, PyObject, PyTuple, TemplateError, type PyValue } from '../jinja/values.ts'
import type { Component } from '../manifest/component.ts'

/** The part of a stream that one request reads: the values of its partition, and the window of its cursor. */
export interface Slice {
  readonly partition: JsonObject
  readonly window: JsonObject
  readonly extra: JsonObject
}

export const WHOLE_STREAM: Slice = { partition: {}, window: {}, extra: {} }

/** One call of a stream: its context, its config with secrets, and the evaluation of its templates. */
export class Run {
  readonly context: SyncContext
  readonly config: JsonObject
  readonly stream: string
  readonly #interpolation: Interpolation

  constructor(stream: string, config: JsonObject, context: SyncContext) {
    this.stream = stream
    this.config = config
    this.context = context
    this.#interpolation = new Interpolation({
      // The start of the cycle: a page that is requested again has the same records.
      nowMs: context.cycle.startedAt,
      random: () => context.random.next(),
    })
  }

  /** The value of a field. Values that are not texts are as they are. */
  value(field: JsonValue | undefined, owner: Component, names: Names = {}): PyValue {
    if (typeof field !== 'string') return toPython(field)
    return this.#guard(owner, () => this.#interpolation.evaluate(field, this.#names(owner, names)))
  }

  /** The value of a field if it has the type, else its text. */
  typed(field: string, owner: Component, names: Names, isValid: (value: PyValue) => boolean): PyValue {
    return this.#guard(owner, () => this.#interpolation.evaluate(field, this.#names(owner, names), field, isValid))
  }

  /** The value of a field, or null if it is undefined or empty. */
  optional(field: JsonValue | undefined, owner: Component, names: Names = {}): PyValue {
    if (typeof field !== 'string') return toPython(field)
    return this.#guard(owner, () => this.#interpolation.evaluate(field, this.#names(owner, names), null))
  }

  text(field: JsonValue | undefined, owner: Component, names: Names = {}): string {
    return print(this.value(field, owner, names))
  }

  /** A text that is not read as a literal, such as the name of a parameter. */
  name(field: string, owner: Component, names: Names = {}): string | null {
    return this.#guard(owner, () => this.#interpolation.evaluateText(field, this.#names(owner, names)))
  }

  test(condition: JsonValue | undefined, owner: Component, names: Names = {}): boolean {
    if (typeof condition !== 'string') return Boolean(condition)
    return this.#guard(owner, () => this.#interpolation.test(condition, this.#names(owner, names)))
  }

  number(field: JsonValue | undefined, owner: Component, names: Names = {}): number | null {
    const value = this.optional(field, owner, names)
    const number = typeof value === 'string' ? Number(value) : Number(toJson(value) ?? Number.NaN)
    return value === null || value === '' || !Number.isFinite(number) ? null : number
  }

  #names(owner: Component, names: Names): Names {
    return { config: toPython(this.config), parameters: toPython(owner.$parameters ?? {}), ...names }
  }

  /** The message of a template error holds no values. */
  #guard<Result>({ type }: Component, evaluate: () => Result): Result {
    try {
      return evaluate()
    } catch (error) {
      if (!(error instanceof TemplateError)) throw error
      throw new SyncError('CONNECTOR_FAILED', `Stream "${this.stream}", ${type}: ${error.message}.`)
    }
  }
}

/** A slice as a template sees it: its values by name, and `partition`, `cursor_slice` and `extra_fields`. */
export function sliceToPython({ partition, window, extra }: Slice): PyObject {
  const attributes = { partition: toPython(partition), cursor_slice: toPython(window), extra_fields: toPython(extra) }
  return new PyObject(toPython({ ...partition, ...window }) as PyObject['items'], attributes)
}

/** A value of Python as JSON. What JSON cannot hold becomes its text. */
export function toJson(value: PyValue): JsonValue {
  if (value === null || typeof value !== 'object') return value as JsonValue
  if (value instanceof PyFloat) return value.value
  if (value instanceof PyTuple) return value.items.map(toJson)
  if (Array.isArray(value)) return value.map(toJson)
  if (value instanceof PyObject) return toJson(value.items)
  if (!isDict(value)) return print(value)
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, toJson(member)]))
}
