import { inFile, type PlantedBug } from './planted-bug.ts'

const CASES = ['test/transforms/column-rules.test.ts']
const RECORDS = ['test/transforms/transform-record.test.ts']
const RULES = ['test/transforms/column-plan.test.ts']

/** Column rules: what they hide, the keys that they use, and which rules the stored rows follow. */
export const COLUMN_BUGS: readonly PlantedBug[] = [
  ...inFile('src/engine/page-transformer.ts', CASES, [
    ['what the source has of an invalid record is kept', '{ ...change, raw: null }', 'change'],
    ['a cursor shows a hidden value', '!hidden.includes(cursor)', 'true'],
    ['a time that is not valid shows a hidden value', '...(hidesTime &&', '...(false &&'],
    ['a shape that is not trusted skips the rules', 'shape?.isTrusted !== true', 'shape === undefined'],
    ['a key may show a hidden value', 'keyMatches.assertNone()', ''],
    ['part of a key may show a hidden value', 'parts.has(String(value))', 'false'],
    ['a number that is equal by chance is taken for a key', 'matches === records && matches > 1', 'matches > 0'],
    ['the metadata of the source may name a hidden key', 'if (hidden !== null) throw', 'if (false) throw'],
    ['the types of the source keep their names', 'return transformShape(plan, shape)', 'return shape'],
  ]),
  ...inFile('src/engine/replay-quarantine.ts', CASES, [
    ['a replay applies the rules twice', '({ columns }) => columns === null', '() => true'],
    ['a replay lands records of other rules', 'change.columns !== database.columns?.fingerprint', 'false'],
  ]),
  ...inFile('src/stores/kit/tables/schema-drift.ts', CASES, [
    [
      'a refused record is not marked with its rules',
      'if (fingerprint === undefined) return refused',
      'return refused',
    ],
  ]),
  ...inFile('src/stores/kit/roles/columns.ts', CASES, [
    [
      'a resumed listing counts for new rules',
      'row?.pending_cycle === cycle && row.pending === fingerprint',
      'row?.pending_cycle === cycle',
    ],
    ['a listing counts before it is complete', 'row.committed_by === row.pending_cycle', 'true'],
    ['a second column key replaces the first', 'if (known.length > 0) return known', ''],
  ]),
  ...inFile('src/stores/kit/roles/leases.ts', CASES, [
    ['every cycle counts as a listing', 'readsAll: state === null', 'readsAll: true'],
  ]),
  ...inFile('src/runner/column-rule-changes.ts', CASES, [
    ['a row of a quarantined record is said to follow the rules', 'row.sequence <= since', 'false'],
    ['a row of a quarantined record counts although it follows the rules', 'row.sequence <= since', 'true'],
  ]),
  ...inFile('src/registry/sealed-store.ts', CASES, [
    [
      'a column key is stored in the clear',
      'secret: await sealer.seal(TENANT_REF, secret, columnKeyPurpose(id), by.at)',
      'secret',
    ],
  ]),
  ...inFile('src/stores/kit/roles/data-keys.ts', CASES, [
    [
      'a rotation leaves column keys sealed with the old key',
      'key_id, secret from {column_keys} where tenant_id = :tenant',
      'key_id, secret from {column_keys} where tenant_id = :tenant and 1 = 0',
    ],
  ]),
  ...inFile('src/registry/column-cipher.ts', RECORDS, [
    ['a ciphertext can be moved to another column', 'keyId, database, field])', 'keyId])'],
    ['equal values of two records have equal ciphertexts', '[aad, recordKey, text]', '[aad, text]'],
    ['a ciphertext can be moved to another tenant', 'tenant, `tidemark column', "'', `tidemark column"],
  ]),
  ...inFile('src/transforms/transform-record.ts', RECORDS, [
    ['a short value is shown by its mask', 'characters.length > mask', 'characters.length >= mask'],
    ['a rename overwrites a field', 'if (present !== undefined) throw', 'if (false) throw'],
    ['the error of a map is quoted', "failed${site === null ? '' : ` at ${site}`}", 'failed: ${String(error)}'],
    ['an infinite number is hashed as null', "text === 'null' ||", ''],
    [
      'a quarantined record keeps protected fields',
      '[...plan.drop, ...plan.protect.map((protection) => protection.path)]',
      'plan.drop',
    ],
  ]),
  ...inFile('src/transforms/field-paths.ts', RECORDS, [
    [
      'a text on the path hides the field in it',
      'if (nested === BLOCKED && options.isStrict',
      'if (false && options.isStrict',
    ],
    ['items of a list keep the field', 'value.map((item) => updateNested(item, path, update, options))', 'value'],
  ]),
  ...inFile('src/transforms/check-column-rules.ts', RULES, [
    ['a field is replaced twice', 'if (other !== undefined)', 'if (false)'],
    ['a rule of a dropped field is accepted', 'if (dropped !== undefined)', 'if (false)'],
    [
      'a rule of a field that is not selected is accepted',
      'if (select !== undefined && !select.some',
      'if (false && !select!.some',
    ],
    ['a declared key may be hidden', 'if (hidden !== undefined)', 'if (false)'],
    ['two fields get one name', 'overlaps(other, to)', 'false'],
  ]),
  ...inFile('src/transforms/column-rules.ts', RULES, [
    ['the version of a map is not part of the fingerprint', '{ ...plan, map: version }', '{ ...plan }'],
  ]),
  ...inFile(
    'src/transforms/cast-value.ts',
    ['test/transforms/cast-value.test.ts'],
    [
      ['a decimal loses digits', 'plainDecimal(number) === normalizeDecimal(text)', 'true'],
      ['a long integer loses digits', 'Number.isSafeInteger(number)', 'true'],
    ],
  ),
]
