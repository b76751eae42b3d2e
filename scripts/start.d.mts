/** npm start: sets up what is missing, builds, and serves the demo page on localhost (port `$PORT`, or from 8080 on the next free one). */
export {};
