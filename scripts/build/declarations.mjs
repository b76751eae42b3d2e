/**
 * What tsc leaves out of the declarations that it writes from JSDoc: the text of a `@typedef`, which editors and the API reference
 * show, and that a type which a file takes from another is that type, with its text, and not one more of the same name.
 */

/** A comment with a `@typedef`. */
const TYPEDEFS = /\/\*\*(?:(?!\*\/)[\s\S])*?@typedef(?:(?!\*\/)[\s\S])*?\*\//g;

/**
 * Of another file, by the same name. Not those with parameters: an annotation with one would then decide what a call is inferred to
 * be, where `const result: AttentionResult = …` is to take what the call gives.
 */
const TAKEN = /^export type (\w+) = import\(['"]([^'"]+)['"]\)\.\1;$/gm;

/**
 * @param {string} declarations as tsc writes them
 * @param {string} source the file that they are of
 * @returns {string}
 */
export function finishDeclarations(declarations, source) {
  // What is left of these comments would stand in front of whatever comes next.
  let text = declarations.replace(new RegExp(`^[ \\t]*(?:${TYPEDEFS.source})[ \\t]*\\n`, 'gm'), '');
  for (const { name, lines } of describedTypes(source)) {
    const comment = `/**\n${lines.map((line) => ` * ${line}`.trimEnd()).join('\n')}\n */\n`;
    text = text.replace(new RegExp(`^(?=export type ${name}\\b)`, 'm'), () => comment);
  }
  return text.replace(
    TAKEN,
    (_, name, file) => `import type { ${name} } from '${file}';\nexport type { ${name} };`,
  );
}

/**
 * Types that a comment says something about, before its first tag or behind the type's name.
 * @param {string} source
 * @returns {{ name: string, lines: string[] }[]}
 */
function describedTypes(source) {
  return [...source.matchAll(TYPEDEFS)].flatMap(([comment]) => {
    const text = comment
      .slice('/**'.length, -'*/'.length)
      .split('\n')
      .map((line) => line.replace(/^\s*\* ?/, '').trimEnd())
      .join('\n');
    // A tag begins a line, or stands behind the one sentence of a comment of one line.
    const [before, ...tags] = text.split(/(?:^|\s)@(?=[a-z]+[\s{])/);
    const types = tags.filter((tag) => /^typedef\s/.test(tag)).map(nameAndText);
    if (types.length === 1) types[0].text = `${before.trim()}\n${types[0].text}`.trim();
    return types.filter((type) => type.text !== '').map((type) => ({ name: type.name, lines: type.text.split('\n') }));
  });
}

/**
 * @param {string} tag `typedef {type} Name text`
 * @returns {{ name: string, text: string }}
 */
function nameAndText(tag) {
  let at = tag.indexOf('{');
  let depth = 0;
  do {
    if (tag[at] === '{') depth++;
    if (tag[at] === '}') depth--;
    at++;
  } while (depth > 0);
  const [, name, text] = /^\s+(\w+)(.*)$/s.exec(tag.slice(at)) ?? [];
  if (!name) throw new Error(`no name after the type in\n${tag}`);
  return { name, text: text.trim() };
}
