/** The project that `tidemark init` creates for a source. Its files are in `templates/sources/<name>/`. */
export interface SourceTemplate {
  /** Sorts the choices of the prompt, lowest first. */
  readonly rank: number
  /** The choice in the prompt. Default: the title of the source. */
  readonly label?: string
  /** The names in `.env`, each with a description of its value. */
  readonly settings: Readonly<Record<string, string>>
  /** The database in the example query. It is also the name of its sync. */
  readonly database: string
  /** The simulated data that the project reads until its settings are set. Default: a simulated account. */
  readonly simulated?: string
  /** When the real source replaces the simulated data; by default, when the last setting is set. */
  readonly until?: string
  /** Additional dependencies of the project. */
  readonly packages?: Readonly<Record<string, string>>
  /** Dependencies of the simulated data. */
  readonly devPackages?: Readonly<Record<string, string>>
}
