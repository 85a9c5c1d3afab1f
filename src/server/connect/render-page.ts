import type { ConnectFormView, ConnectRefusal, ConnectView } from '../../connections/connect/connect-flow.ts'
import type { ProviderInput } from '../../connections/define-provider.ts'

/** Renders a page of the connect flow. `path` is the path of its files. */
export function renderConnectPage(view: Exclude<ConnectView, { kind: 'redirect' }>, path: string): string {
  switch (view.kind) {
    case 'form':
      return renderForm(view, path)
    case 'done': {
      const { title, result, openerOrigin } = view
      return renderDocument(
        `${title} is connected`,
        '<p>You can close this window.</p>',
        path,
        ` data-origin="${escape(openerOrigin)}" data-status="${escape(result.status)}" data-connection="${escape(result.connection ?? '')}" data-provider="${escape(result.provider ?? '')}"`,
        `<script src="${escape(path)}/done.js"></script>`,
      )
    }
    case 'refused':
      return renderDocument(REFUSALS[view.reason].title, `<p>${escape(REFUSALS[view.reason].text)}</p>`, path)
    default:
      return view satisfies never
  }
}

/** The page for an error of the server. It shows nothing of the error. */
export function renderErrorPage(path: string): string {
  return renderDocument(
    'Something went wrong',
    '<p>Nothing was connected. Go back to the app and try again in a minute.</p>',
    path,
  )
}

const REFUSALS: Readonly<Record<ConnectRefusal, { readonly title: string; readonly text: string }>> = {
  unknown: {
    title: 'This link has expired',
    text: 'A link can be used once, and for a few minutes. Go back to the app and start again.',
  },
  'other-browser': {
    title: 'This link belongs to another browser',
    text: 'For your safety, it works only in the browser that started it. Do not use links that others sent you. Go back to the app and start again.',
  },
  used: { title: 'This link was already used', text: 'Go back to the app to see the connection.' },
  'form-token': {
    title: 'This form is out of date',
    text: 'Nothing was connected. Go back to the app and start again.',
  },
  state: {
    title: 'This answer does not belong to your session',
    text: 'Nothing was connected. Go back to the app and start again.',
  },
}

function renderForm(view: ConnectFormView, path: string): string {
  const { appName, title, method, steps, documentation, inputs, failure, account, returnTo } = view
  const heading = account === null ? `Connect ${title} to ${appName}` : `Connect ${title} again`
  const names = Object.keys(inputs)
  const intro =
    account === null
      ? `${appName} will read the data of your ${title} account.`
      : `The connection belongs to the account ${account}.`
  return renderDocument(
    heading,
    [
      failure === null ? '' : `<p class="failure" role="alert">${escape(failure)}</p>`,
      `<p>${escape(intro)}</p>`,
      steps.length === 0
        ? ''
        : `<ol>${steps.map((step) => `<li>${escape(step)}</li>`).join('')}</ol>
<p class="muted"><a href="${escape(documentation)}" target="_blank" rel="noopener noreferrer">Documentation of ${escape(title)}</a></p>`,
      '<form method="post" autocomplete="off">',
      `<input type="hidden" name="form_token" value="${escape(view.formToken)}">`,
      view.isPopup ? '<input type="hidden" name="popup" value="1">' : '',
      ...names.map((name) => renderInput(name, inputs[name] as ProviderInput, view)),
      `<button type="submit">${escape(method === 'oauth' ? `Continue to ${title}` : 'Connect')}</button>`,
      '</form>',
      returnTo === null || view.isPopup
        ? ''
        : `<a class="leave" href="${escape(returnTo)}">Back to ${escape(appName)}</a>`,
    ].join('\n'),
    path,
  )
}

function renderInput(name: string, input: ProviderInput, { entered, errors }: ConnectFormView): string {
  const { label, hint, example, isSecret = false } = input
  const id = `input-${name}`
  const error = errors[name]
  const described = [...(hint === undefined ? [] : [`${id}-hint`]), ...(error === undefined ? [] : [`${id}-error`])]
  // A secret is never sent back to the browser.
  const value = isSecret ? '' : (entered[name] ?? input.default ?? '')
  return [
    '<div class="field">',
    `<label for="${escape(id)}">${escape(label)}</label>`,
    `<input id="${escape(id)}" name="${escape(name)}" type="${isSecret ? 'password' : 'text'}" value="${escape(value)}"`,
    ` autocomplete="off" autocapitalize="off" spellcheck="false" required`,
    example === undefined ? '' : ` placeholder="${escape(example)}"`,
    described.length === 0 ? '' : ` aria-describedby="${escape(described.join(' '))}"`,
    error === undefined ? '>' : ' aria-invalid="true">',
    hint === undefined ? '' : `<p class="muted" id="${escape(id)}-hint">${escape(hint)}</p>`,
    error === undefined ? '' : `<p class="error" id="${escape(id)}-error">${escape(error)}</p>`,
    '</div>',
  ].join('')
}

function renderDocument(heading: string, content: string, path: string, attributes = '', scripts = ''): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escape(heading)}</title>
<link rel="stylesheet" href="${escape(path)}/page.css">
</head>
<body${attributes}>
<main>
<h1>${escape(heading)}</h1>
${content}
</main>
${scripts}
</body>
</html>
`
}

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.codePointAt(0) ?? 0};`)
}
