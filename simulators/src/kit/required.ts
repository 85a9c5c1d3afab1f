/** Returns the value, or throws if it is missing: for values that an earlier check or type cannot express. */
export function required<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new Error(`${what} is missing`)
  return value
}
