import { inFile, type PlantedBug } from './planted-bug.ts'

const CASES = ['test/transforms/column-rules.test.ts']
const RECORDS = ['test/transforms/transform-record.test.ts']
const RULES = ['test/transforms/column-plan.test.ts']
const CONVERSIONS = ['test/transforms/plan-conversion.test.ts']
const SQLITE = ['test/stores/sqlite.test.ts']

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
  ...inFile('src/engine/rewrite-columns.ts', CASES, [
    [
      'the rules are noted after the first row was rewritten',
      'const noted = required(await note(false)',
      "const noted = required((await store.columnRules(plan.worker))[0] ?? { used: [{ sync: '', since: 0, rules: '' }] }",
    ],
    ['rows are said to follow rules that some refuse', 'isApplied = isComplete && ', 'isApplied = '],
    ['an old version of a row is rewritten', '?.sequence === entry.sequence) current', ' !== null) current'],
    ['rows of unknown syncs do not count', 'lost.push(`it was written by ${sync}`)', '`it was written by ${sync}`'],
    [
      'a delta goes on by other rules',
      "if (plan.pair?.role === 'backfill') {\n      held",
      "if (plan.pair?.role === 'delta') {\n      held",
    ],
    ['the rules of a row are those of any sync', "&& (sync === row.sync || sync === ''))", ')'],
    ['a renamed column loses its type', 'return type === undefined || this.#types.has(name) ? []', 'return true ? []'],
    ['a dry run makes a column key', 'const transformer = dryRun\n', 'const transformer = dryRun && false\n'],
  ]),
  ...inFile('src/transforms/plan-conversion.ts', CONVERSIONS, [
    ['a rename is left where a rule concerns it', 'overlaps(path, name)))', 'path === name && false))'],
    ['a rule is applied twice', 'protect: without(next.protect, from.protect)', 'protect: next.protect'],
    [
      'a removed field is taken for absent',
      '.filter((path) => !dropped.includes(path) &&',
      '.filter((path) => false && !dropped.includes(path) &&',
    ],
    [
      'fields that were left out are taken for absent',
      '.filter((path) => !kept.includes(path))',
      '.filter(() => false)',
    ],
    [
      'a value that was replaced is taken for the original',
      '!isSame(listRulesOf(path, from), listRulesOf(path, next))',
      'false',
    ],
    ['part of a replaced value is removed', 'if (isCut ||', 'if ('],
    ['a ciphertext keeps the name of its column', "protection.kind === 'encrypt' ?", 'false ?'],
    ['a new map gets changed records', 'return removed.length === 0 ? []', 'return removed.length >= 0 ? []'],
    ['a field of the new name is taken for the renamed one', 'return !isUnambiguous || name', 'return name'],
  ]),
  ...inFile(
    'src/stores/kit/roles/columns.ts',
    SQLITE,
    [
      ['a delta’s rules are not recorded', 'if (hasBegun && used !== known.used)', 'if (false && hasBegun)'],
      ['a new sync has rows of other rules', 'isOwn && isFirst ? first : NO_RULES', 'NO_RULES'],
      [
        'rules are applied although others began',
        'if (isApplied && lastUse(known.used, sync)?.rules !== rules) return null',
        '',
      ],
      ['every cycle records its rules', 'lastUse(used, use.sync)?.rules === use.rules ? used', 'false ? used'],
    ],
    'rules of every cycle|first cycle of a sync|rewrit',
  ),
  ...inFile(
    'src/stores/kit/checkpoint.ts',
    SQLITE,
    [
      [
        'a rewriting drops quarantined records',
        "if (waiting !== undefined && transition.kind !== 'columns')",
        'if (waiting !== undefined)',
      ],
      ['a rewriting belongs to the running cycle', " || transition.kind === 'columns'\n", '\n'],
    ],
    'rules of every cycle|first cycle of a sync|rewrit',
  ),
  ...inFile('src/transforms/field-paths.ts', CONVERSIONS, [
    [
      'a list beside a field with the path as its name keeps the field',
      '!(isLiteral && !Array.isArray(record[head]))',
      '!isLiteral',
    ],
  ]),
]
