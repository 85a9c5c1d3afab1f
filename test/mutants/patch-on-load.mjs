// Hooks for node:module: the source of a patched file is replaced while it is loaded, so no copy of the package is
// needed.
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

let patches = []

export function initialize(data) {
  patches = data
}

export async function load(url, context, nextLoad) {
  const own = patches.filter((patch) => patch.url === url)
  if (own.length === 0) return nextLoad(url, context)
  let source = await readFile(fileURLToPath(url), 'utf8')
  for (const { find, replace } of own) source = source.replace(find, () => replace)
  return { format: 'module', source, shortCircuit: true }
}
