// Writes src/sources/registry.ts, src/destinations/registry.ts and src/connections/registry.ts: every folder that has a
// descriptor, and every provider. `--check` writes nothing and fails if a file is out of date.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const REGISTRIES = [
  { kind: 'source', folder: 'src/sources', list: listDescriptors, path: (name) => `./${name}/descriptor.ts` },
  { kind: 'destination', folder: 'src/destinations', list: listDescriptors, path: (name) => `./${name}/descriptor.ts` },
  { kind: 'provider', folder: 'src/connections', list: listProviders, path: (name) => `./providers/${name}.ts` },
]

for (const { kind, folder, list, path } of REGISTRIES) {
  const file = resolve(import.meta.dirname, '..', folder, 'registry.ts')
  const text = renderRegistry(kind, list(resolve(file, '..')), path)
  if (existsSync(file) && readFileSync(file, 'utf8') === text) continue
  if (process.argv.includes('--check')) {
    console.error(`${folder}/registry.ts is out of date. Run \`npm run sources\`.`)
    process.exit(1)
  }
  writeFileSync(file, text)
}

function listDescriptors(folder) {
  return readdirSync(folder)
    .filter((name) => existsSync(join(folder, name, 'descriptor.ts')))
    .sort()
}

function listProviders(folder) {
  return readdirSync(join(folder, 'providers'))
    .filter((name) => name.endsWith('.ts'))
    .map((name) => name.slice(0, -'.ts'.length))
    .sort()
}

function renderRegistry(kind, names, path) {
  const title = kind[0].toUpperCase() + kind.slice(1)
  const variable = (name) => name.replaceAll(/-(.)/g, (_, letter) => letter.toUpperCase())
  const member = (name) => (variable(name) === name ? name : `'${name}': ${variable(name)}`)
  return `// Generated from the folders by \`npm run sources\`. Do not edit.
${names.map((name) => `import ${variable(name)} from '${path(name)}'\n`).join('')}
/** Every ${kind}, by name. */
export const ${kind.toUpperCase()}S = {
${names.map((name) => `  ${member(name)},\n`).join('')}}

export type ${title}Name = keyof typeof ${kind.toUpperCase()}S
`
}
