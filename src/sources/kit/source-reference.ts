/**
 * The section of a source in docs/reference/sources.md: the default export of `src/sources/<name>/reference.ts`. Names
 * and types of options are read from the interfaces. These files are not part of the package.
 */
export interface SourceReference {
  /** The credentials and permissions that the source needs. */
  readonly auth: string
  readonly streams: readonly (readonly [name: string, mode: string, records: string])[]
  readonly lag: string
  readonly retention: string
  readonly deletions: string
  readonly pace: string
  /** The origin of column types, if not the values. */
  readonly types?: string
  /** A file in docs/guides. */
  readonly guide?: string
  readonly groups: readonly OptionGroup[]
}

export interface OptionGroup {
  /** The call that takes the options. */
  readonly title: string
  /** The file and name of the interface, from src/sources. */
  readonly file: string
  readonly name: string
  readonly members: Readonly<Record<string, OptionReference>>
}

/** The default (null for none) and the meaning, with its limits. */
export type OptionReference = readonly [fallback: string | null, meaning: string]

export const HTTP_PACE = 'No pacer of its own. Waits as long as a 429, or a 403 with an exhausted budget, requires.'

export const AUTH_OPTION: OptionReference = [
  null,
  'Instead of a token or key: `bearer`, `basic`, `apiKey`, `clientCredentials` or `refreshToken` of `tidemark/connector`. Give exactly one of the two.',
]

export const SAFETY_WINDOW_OPTION: OptionReference = [
  'none',
  'Every cycle reads this much again, as a duration such as `PT5M`.',
]

export const SINCE_OPTION: OptionReference = [
  'none',
  'The start date, such as `2024-01-31`: records that last changed before it are not read.',
]

export function secretOption(subject: string): OptionReference {
  return [null, `${subject}, or the name of the secret that holds it.`]
}

export function lagOption(fallback: string): OptionReference {
  return [
    fallback,
    'Milliseconds that a change may take to become readable. A delta stays that far behind; not below 0.',
  ]
}
