// Writing to the standard output, which may be a pipe whose reader leaves early (sdpa info | head -1).

/**
 * @param {NodeJS.WriteStream} stream
 * @param {string | Uint8Array} content
 * @returns {Promise<void>} rejects with EPIPE where nobody reads
 */
export function writeAll(stream, content) {
  return new Promise((resolve, reject) => {
    stream.write(content, (error) => (error ? reject(error) : resolve()));
  });
}

/**
 * Keeps the 'error' event of a closed pipe from ending the process with a stack trace; the write itself reports it.
 * @param {NodeJS.WriteStream[]} streams
 */
export function silencePipeErrors(streams) {
  for (const stream of streams) stream.on('error', () => {});
}

/**
 * @param {unknown} error
 * @returns {boolean}
 */
export function isClosedPipe(error) {
  return /** @type {NodeJS.ErrnoException} */ (error)?.code === 'EPIPE';
}
