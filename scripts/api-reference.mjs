// Writes docs/reference/api/ from the declarations in dist/: one page per entry point of package.json, and an index.
// Run `npm run build` first. test/docs/api-reference.test.ts compares the committed pages with this output.

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { API, SymbolFlags } from 'typescript/unstable/sync'

export const PAGES_FOLDER = 'docs/reference/api'

const ROOT = resolve(import.meta.dirname, '..')
/** The package of the simulators, built by `npm run build`. */
export const SIMULATORS_FOLDER = join(ROOT, 'simulators')
const CONFIG_NAME = 'tsconfig.api-reference.json'

/**
 * Reads the public declarations of a built package.
 *
 * @param {string} packageFolder A folder with package.json and dist/.
 * @returns {{ name: string, types: string, exports: ApiExport[] }[]} The entry points, each with its exports by name.
 *
 * @typedef {{ name: string, kind: string, signature: string, description: string, examples: string[] }} ApiExport
 */
export function readEntryPoints(packageFolder) {
  const entryPoints = listEntryPoints(packageFolder)
  const configPath = join(packageFolder, CONFIG_NAME)
  const config = JSON.stringify({
    compilerOptions: {
      target: 'es2023',
      lib: ['es2024', 'esnext.disposable'],
      module: 'nodenext',
      types: ['node'],
      strict: true,
      skipLibCheck: true,
      noEmit: true,
    },
    files: entryPoints.map(({ types }) => types),
  })
  const api = new API({
    cwd: packageFolder,
    fs: {
      readFile: (path) => (path === configPath ? config : undefined),
      fileExists: (path) => (path === configPath ? true : undefined),
    },
  })
  try {
    const project = api.updateSnapshot({ openProjects: [configPath] }).getProject(configPath)
    return entryPoints.map(({ name, types }) => ({
      name,
      types,
      exports: readExports(project, join(packageFolder, types)),
    }))
  } finally {
    api.close()
  }
}

/** Lists the exports without a TSDoc comment, as `entry point: name`. */
export function listUndocumented(entryPoints) {
  return entryPoints.flatMap(({ name: entryPoint, exports }) =>
    exports.filter(({ description }) => description === '').map(({ name }) => `${entryPoint}: ${name}`),
  )
}

/** Renders every page: file name to text. */
export function renderPages(entryPoints) {
  return new Map([
    ['index.md', renderIndex(entryPoints)],
    ...entryPoints.map((entryPoint) => [pageName(entryPoint), renderPage(entryPoint)]),
  ])
}

/** Lists the entry points of package.json, with one for each folder that a pattern matches. */
function listEntryPoints(packageFolder) {
  const { name, exports } = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8'))
  return Object.entries(exports).flatMap(([subpath, { types }]) => {
    if (types === undefined) return []
    if (!subpath.includes('*')) return [{ name: join(name, subpath), types }]
    const [before, after] = types.split('*')
    return readdirSync(join(packageFolder, before), { withFileTypes: true })
      .filter(
        (entry) => entry.isDirectory() && readdirSync(join(packageFolder, before, entry.name)).includes(after.slice(1)),
      )
      .map((entry) => entry.name)
      .toSorted()
      .map((folder) => ({ name: join(name, subpath.replace('*', folder)), types: `${before}${folder}${after}` }))
  })
}

function readExports(project, path) {
  const { checker, program } = project
  const file = program.getSourceFile(path)
  return checker
    .getExportsOfModule(checker.getSymbolAtLocation(file))
    .map((exported) => {
      const symbol = exported.flags & SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported
      const declarations = symbol.declarations.map((declaration) => declaration.resolve(project))
      return {
        name: exported.name,
        kind: kindOf(symbol),
        signature: declarations.map(signatureOf).join('\n'),
        description: unwrap(checker.getDocumentationCommentOfSymbol(symbol)),
        examples: checker
          .getJsDocTagsOfSymbol(symbol)
          .filter((tag) => tag.name === 'example')
          .map((tag) => tag.text.trim()),
      }
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

const KINDS = [
  [SymbolFlags.Class, 'class'],
  [SymbolFlags.Function, 'function'],
  [SymbolFlags.Interface, 'interface'],
  [SymbolFlags.TypeAlias, 'type'],
  [SymbolFlags.Variable, 'constant'],
]

function kindOf({ name, flags }) {
  const kind = KINDS.find(([flag]) => flags & flag)?.[1]
  if (kind === undefined) throw new Error(`${name} has an unknown kind of declaration (flags ${flags}).`)
  return kind
}

/** The text of a declaration, without its comment, modifiers and private members. */
function signatureOf(node) {
  // The statement of a variable also holds its keyword.
  const statement = node.parent?.parent?.declarationList === node.parent && node.parent ? node.parent.parent : node
  return statement
    .getText()
    .replace(/^(?:export |declare )+/, '')
    .replaceAll(/^ +(?:#private|private .*);\n/gm, '')
    .replaceAll(/^( +)/gm, (indent) => ' '.repeat(Math.ceil(indent.length / 2)))
}

/** Joins the lines of a paragraph, because a comment is wrapped for its source file. Code, lists and tables stay. */
function unwrap(text) {
  return text
    .trim()
    .split(/(^```[\s\S]*?^```$)/m)
    .map((part) =>
      part.startsWith('```')
        ? part
        : part
            .split(/\n{2,}/)
            .map(unwrapParagraph)
            .join('\n\n'),
    )
    .join('')
}

function unwrapParagraph(paragraph) {
  if (/^ {2}\S.* {2}/m.test(paragraph)) return `\`\`\`text\n${paragraph.replaceAll(/^ {2}/gm, '')}\n\`\`\``
  return /^[-|]/m.test(paragraph) ? paragraph : paragraph.replaceAll(/(?<=\S)[ ]*\n[ ]*(?=\S)/g, ' ')
}

function renderPage({ name, types, exports }) {
  return [
    `# ${name}`,
    '',
    `Generated from the declarations in \`${types.replace('./', '')}\`. Import from \`${name}\`.`,
    ...exports.flatMap(({ name: exported, kind, signature, description, examples }) => [
      '',
      `## ${exported}`,
      '',
      `${kind}`,
      '',
      '```typescript',
      signature,
      '```',
      ...(description === '' ? [] : ['', description]),
      ...examples.flatMap((example) => ['', example]),
    ]),
    '',
  ].join('\n')
}

function renderIndex(entryPoints) {
  return [
    '# The API',
    '',
    'Every name that the package exports, by entry point. Generated by `scripts/api-reference.mjs`.',
    '',
    '| import | exports |',
    '|---|---|',
    ...entryPoints.map(
      (entryPoint) => `| [\`${entryPoint.name}\`](${pageName(entryPoint)}) | ${entryPoint.exports.length} |`,
    ),
    '',
  ].join('\n')
}

function pageName({ name }) {
  return `${name.replace('@', '').replaceAll('/', '-')}.md`
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const entryPoints = [...readEntryPoints(ROOT), ...readEntryPoints(SIMULATORS_FOLDER)]
  const folder = join(ROOT, PAGES_FOLDER)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const [file, text] of renderPages(entryPoints)) writeFileSync(join(folder, file), text)
  const undocumented = listUndocumented(entryPoints)
  const count = entryPoints.reduce((sum, { exports }) => sum + exports.length, 0)
  console.log(`${entryPoints.length} entry points, ${count} exports, ${undocumented.length} without a comment`)
  for (const line of undocumented) console.log(line)
}
