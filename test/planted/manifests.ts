import { inFile, type PlantedBug } from './planted-bug.ts'

const FORMS = ['test/config/source-forms.test.ts']
const MIGRATIONS = ['test/stores/migrations/sqlite.test.ts']
const VERSIONS = ['test/stores/migrations/later-versions.pg.test.ts']

/** Manifests made from the forms of the console, and upgrades that rename columns. */
export const MANIFEST_BUGS: readonly PlantedBug[] = [
  ...inFile('src/config/manifest/source-forms.ts', FORMS, [
    ['the draft of a manifest is not checked', 'checkManifest(manifest, MANIFEST_FILE)', ''],
    ['the text of an invalid draft is returned', 'return { manifest: null,', 'return { manifest: manifest as never,'],
    ['fields without a choice are asked for', "!('not' in schema) && !('const' in schema)", 'true'],
  ]),
  ...inFile('src/stores/sqlite/connection.ts', MIGRATIONS, [
    ['a broken view of the user is not named', 'if (broken === undefined) throw error', 'throw error'],
  ]),
  ...inFile('src/stores/sqlite/migrations/0022-plain-column-names.ts', VERSIONS, [
    [
      'the end reason of earlier cycles is lost',
      'alter table tidemark_cycles rename column stop_word to end_reason',
      'alter table tidemark_cycles add column end_reason text',
    ],
  ]),
]
