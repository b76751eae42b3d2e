// Text to the clipboard, and a button that says so.

/**
 * @param {string} text
 * @returns {Promise<boolean>} false where the page has no clipboard
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Shows another text on a button for two seconds.
 * @param {HTMLElement} button
 * @param {string} text
 */
export function flash(button, text) {
  const usual = (button.dataset.usual ??= button.textContent ?? '');
  button.textContent = text;
  setTimeout(() => (button.textContent = usual), 2000);
}
