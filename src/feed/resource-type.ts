/** Declared resource types by database name. */
export type ResourceTypes = Readonly<Record<string, string>>

/** Returns the declared type, or the singular of the database's name: `products` → `product`, `entries` → `entry`. */
export function resourceTypeOf(database: string, declared: ResourceTypes = {}): string {
  const type = Object.hasOwn(declared, database) ? declared[database] : undefined
  return type ?? singularize(database)
}

/** Handles regular English plurals only. Other names are unchanged and can be declared. */
function singularize(name: string): string {
  if (NOT_PLURAL.test(name)) return name
  const [, stem = '', ending = ''] = /^(.*?)(ies|(?<=ss|x|ch|sh)es|s)$/i.exec(name) ?? []
  if (stem === '') return name
  return ending.toLowerCase() === 'ies' ? `${stem}${ending === 'IES' ? 'Y' : 'y'}` : stem
}

/** `status`, `analysis` and `address` are not plurals; `series` and `movies` do not end in y. */
const NOT_PLURAL = /(?:ss|us|is|^s|series|species|news)$/i
