/** What a database's rows are called on the wire, by database, where it was declared. */
export type ResourceTypes = Readonly<Record<string, string>>

/** The declared name, else the singular of the database's name: `products` → `product`, `entries` → `entry`. */
export function resourceTypeOf(database: string, declared: ResourceTypes = {}): string {
  return Object.hasOwn(declared, database) ? declared[database]! : singularize(database)
}

/** Regular English plurals only. Another name stays as it is, and can be declared. */
function singularize(name: string): string {
  if (NOT_PLURAL.test(name)) return name
  const [, stem, ending] = /^(.*?)(ies|(?<=ss|x|ch|sh)es|s)$/i.exec(name) ?? []
  if (stem === undefined || stem === '') return name
  return ending!.toLowerCase() === 'ies' ? `${stem}${ending === 'IES' ? 'Y' : 'y'}` : stem
}

/** `status`, `analysis`, `address` and the like are no plurals; `series` and `movies` are not formed with a y. */
const NOT_PLURAL = /(?:ss|us|is|^s|series|species|news)$/i
