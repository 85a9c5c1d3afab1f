/** The table of a database: its name, and for a tenant other than `default` the tenant's name before it. */
export function tableNameOf(tenant: string, database: string, bytesMax = 48): string {
  const name = tenant === 'default' ? database : `${tenant}__${database}`
  if (Buffer.byteLength(name) <= bytesMax) return name
  // Cut names stay distinct by a hash of the whole name.
  let hash = 0xcbf29ce484222325n
  for (const byte of Buffer.from(name)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n)
  let cut = name
  while (Buffer.byteLength(cut) > bytesMax - 17) cut = cut.slice(0, -1)
  return `${cut}_${hash.toString(16)}`
}
