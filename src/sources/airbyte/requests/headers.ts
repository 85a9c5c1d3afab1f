import { PyObject, type PyDict } from '../jinja/values.ts'

/** The headers of a response for templates. `link` is the links by relation, as the framework has it. */
export function headersToPython(headers: Headers): PyObject {
  const items: PyDict = Object.fromEntries(headers)
  const text = headers.get('link')
  if (text !== null) items.Link = text
  items.link = text === null ? {} : parseLinks(text)
  return new PyObject(items, {}, true)
}

function parseLinks(text: string): PyDict {
  const links: PyDict = {}
  for (const [, url = '', parameters = ''] of text.slice(0, 16_384).matchAll(/<([^<>]*)>([^,<]*)/g)) {
    const found = /;\s*rel\s*=\s*(?:"([^"]*)"|'([^']*)'|([^;,\s]+))/i.exec(parameters)
    const relation = found?.[1] ?? found?.[2] ?? found?.[3]
    links[relation ?? url] = { url, ...(relation !== undefined && { rel: relation }) }
  }
  return links
}
