/** Rewrites the parts of Jinja's syntax that the tokenizer does not read as Jinja does. */
export function normalizeTemplate(template: string): string {
  const lines = template.includes('\r') ? template.replace(/\r\n?/g, '\n') : template
  const tags = /\{%-?\s*(?:raw|if|elif|else|for)\b/.test(lines) ? dropColons(replaceRawBlocks(lines)) : lines
  return keepUnknownEscapes(tags)
}

/** The text of a raw block is printed as it is. */
function replaceRawBlocks(template: string): string {
  return template.replace(
    /\{%-?\s*raw\s*-?%\}([\s\S]*?)\{%-?\s*endraw\s*-?%\}/g,
    (_, body: string) => `{{ "${body.replace(/[\\"]/g, '\\$&').replaceAll('{', '" ~ "{" ~ "')}" }}`,
  )
}

/** Jinja allows a colon at the end of a statement. */
function dropColons(template: string): string {
  return template.replace(/(\{%-?\s*(?:if|elif|else|for)\b(?:(?!%\})[\s\S])*?)\s*:\s*(-?%\})/g, '$1 $2')
}

/** Python keeps the backslash of an unknown escape in a text, such as `"\d"`; the tokenizer refuses it. */
function keepUnknownEscapes(template: string): string {
  if (!template.includes('\\')) return template
  return template.replace(/\{\{[\s\S]*?\}\}|\{%[\s\S]*?%\}/g, (tag) =>
    tag.replace(/'(?:\\[\s\S]|[^'\\])*'|"(?:\\[\s\S]|[^"\\])*"/g, (text) =>
      text.replace(/\\([\s\S])/g, (escape, character: string) =>
        KNOWN_ESCAPES.has(character) ? escape : `\\\\${character}`,
      ),
    ),
  )
}

const KNOWN_ESCAPES = new Set(['n', 't', 'r', 'b', 'f', 'v', "'", '"', '\\'])
