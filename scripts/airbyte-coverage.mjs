// Loads every Airbyte manifest in a folder, and prints the share that Tidemark runs and what the others need.
// Usage: npm run build && node scripts/airbyte-coverage.mjs <folder> [--list]
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const { describeCoverage } = await import('../dist/sources/airbyte/manifest/coverage.js')

const [folder, ...flags] = process.argv.slice(2)
if (folder === undefined) {
  console.error('Name the folder with the manifests.')
  process.exit(2)
}
const files = readdirSync(folder, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && /\.ya?ml$/.test(entry.name))
  .map((entry) => join(entry.parentPath, entry.name))
const report = describeCoverage(files.map((file) => ({ file, text: readFileSync(file, 'utf8') })))
const share = (part, whole) => `${part} of ${whole} (${whole === 0 ? 0 : ((100 * part) / whole).toFixed(1)} %)`
console.log(`manifests that load:          ${share(report.loaded, report.manifests)}`)
console.log(`without code in Python:       ${share(report.pure, report.manifests)}`)
console.log(`of these fully supported:     ${share(report.supported, report.pure)}`)
console.log(`streams that run:             ${share(report.streamsSupported, report.streams)}`)
console.log('\nwhat is missing, by manifests:')
for (const [feature, count] of report.missing) console.log(`${String(count).padStart(5)}  ${feature}`)
for (const { file, reason } of report.failures) console.log(`does not load: ${file}: ${reason}`)
if (flags.includes('--list')) for (const file of report.partial) console.log(`partly supported: ${file}`)
