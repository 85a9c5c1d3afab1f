import { print } from './printing.ts'
import { isFloat, isNumber, TemplateError, toNumber, type Keywords, type PyValue } from './values.ts'

/** `str.format`: positions, names, members of them, and the common format specifications of numbers and texts. */
export function formatTemplate(
  template: string,
  positional: readonly PyValue[],
  keywords: Keywords,
  readMember: (owner: PyValue, name: string, kind: 'attribute' | 'item') => PyValue,
): string {
  let used = 0
  return template.replace(/\{\{|\}\}|\{([^{}]*)\}/g, (whole, field: string | undefined) => {
    if (field === undefined) return whole.charAt(0)
    const [path = '', specification = ''] = splitOnce(field, ':')
    const [first = '', ...members] = path.split(/(?=[.[])/)
    const named = first === '' ? positional[used++] : /^\d+$/.test(first) ? positional[Number(first)] : keywords[first]
    if (named === undefined) throw new TemplateError('a text has a place without a value')
    const value = members.reduce<PyValue>(
      (owner, member) =>
        member.startsWith('.')
          ? readMember(owner, member.slice(1), 'attribute')
          : readMember(owner, member.slice(1, -1), 'item'),
      named,
    )
    return formatValue(value, specification)
  })
}

function splitOnce(text: string, mark: string): string[] {
  const at = text.indexOf(mark)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

function formatValue(value: PyValue, specification: string): string {
  if (specification === '') return print(value)
  const found = /^(?:(.)?([<>^]))?(0)?(\d+)?(,)?(?:\.(\d+))?([sdfx%])?$/.exec(specification)
  if (found === null) throw new TemplateError(`the format ${JSON.stringify(specification)} is not supported`)
  const [, fill, align, zero, width, comma, precision, kind] = found
  const shown =
    comma === undefined ? formatKind(value, kind, precision) : groupThousands(formatKind(value, kind, precision))
  const size = Math.min(Number(width ?? 0), 1_000)
  const padding = zero === undefined ? (fill ?? ' ') : '0'
  const isRight = align === undefined ? isNumber(value) : align === '>'
  return isRight ? shown.padStart(size, padding) : shown.padEnd(size, padding)
}

function groupThousands(text: string): string {
  const [whole = '', ...fraction] = text.split('.')
  return [whole.replace(/\B(?=(\d{3})+$)/g, ','), ...fraction].join('.')
}

function formatKind(value: PyValue, kind: string | undefined, precision: string | undefined): string {
  if (!isNumber(value) || kind === 's') {
    const text = print(value)
    return precision === undefined ? text : text.slice(0, Number(precision))
  }
  const digits = Math.min(Number(precision ?? 6), 100)
  if (kind === 'f') return toNumber(value).toFixed(digits)
  if (kind === '%') return `${(toNumber(value) * 100).toFixed(digits)}%`
  if (kind === 'x') return toNumber(value).toString(16)
  return precision === undefined || !isFloat(value) ? print(value) : String(Number(toNumber(value).toPrecision(digits)))
}
