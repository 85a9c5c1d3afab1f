const NAME_BYTES_MAX = 48

/** The rows that are read, or those of an unfinished load. */
export type Target = 'live' | 'loading'

/** The table of a database: its name, and for a tenant other than `default` the tenant's name before it. */
export function tableNameOf(tenant: string, database: string, bytesMax = NAME_BYTES_MAX): string {
  const name = tenant === 'default' ? database : `${tenant}__${database}`
  return Buffer.byteLength(name) <= bytesMax ? name : addHash(name, bytesMax)
}

/** The table for the children in a field. Names that end like the tables of a load get a hash. */
export function childTableNameOf(table: string, member: string, bytesMax = NAME_BYTES_MAX): string {
  const name = `${table}__${member}`
  const isPlain = /^[\w-]+$/.test(member) && !/(?:^|__)(?:loading|old)$/i.test(member)
  return isPlain && Buffer.byteLength(name) <= bytesMax ? name : addHash(name, bytesMax)
}

/** A table as it is called while its load is unfinished. */
export function toTargetName(table: string, target: Target): string {
  return target === 'live' ? table : `${table}__loading`
}

/** Cut names, and those with replaced characters, stay distinct by a hash of the whole name. */
function addHash(name: string, bytesMax: number): string {
  let hash = 0xcbf29ce484222325n
  for (const byte of Buffer.from(name)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n)
  const safe = name.replaceAll(/[^\w.-]/g, '_')
  return `${safe.slice(0, bytesMax - 17)}_${hash.toString(16)}`
}
