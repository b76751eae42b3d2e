// The section's elements.

export const markup = `
  <div class="card">
    <form id="form">
      <fieldset id="settings" class="controls">
        <legend class="visually-hidden">Settings</legend>
        <div class="field wide">
          <label for="tokens">Tokens <output id="tokens-shown" for="tokens"></output></label>
          <input id="tokens" type="range" min="0" step="1" />
          <div class="ends" aria-hidden="true"><span id="tokens-least"></span><span id="tokens-most"></span></div>
        </div>
        <div class="field">
          <label for="build">Build</label>
          <select id="build"></select>
        </div>
        <div class="field">
          <label for="threads">Workers</label>
          <select id="threads"></select>
        </div>
        <label class="switch">
          <input id="causal" type="checkbox" role="switch" />
          <span>Causal</span>
        </label>
      </fieldset>
      <div class="buttons">
        <button id="run" type="submit" disabled>Run</button>
        <button id="run-each" type="button" class="quiet" disabled>Compare workers</button>
      </div>
    </form>
    <div class="doing">
      <progress id="progress" max="1" value="0" aria-label="Progress of the run"></progress>
      <p id="status" role="status"></p>
    </div>
  </div>

  <div class="memory">
    <h3>Memory, drawn to scale</h3>
    <div class="pair">
      <p class="ours">
        <span class="amount"><output id="ours-amount">–</output> <span id="ours-unit"></span></span>
        <span id="ours-note"></span>
      </p>
      <p class="plain">
        <span class="amount"><output id="plain-amount">–</output> <span id="plain-unit"></span></span>
        <span>for the score matrix of a plain computation, before anything else</span>
      </p>
      <div class="stage" aria-hidden="true">
        <div id="plain-square" class="square"></div>
        <div id="ours-square" class="square"></div>
      </div>
    </div>
    <p id="scale-note" class="note"></p>
  </div>

  <div id="results" hidden>
    <h3>What this run did</h3>
    <dl class="figures">
      <div>
        <dt>Time</dt>
        <dd><output id="time"></output></dd>
        <dd id="time-note" class="note"></dd>
      </div>
      <div>
        <dt>Speed</dt>
        <dd><output id="speed"></output></dd>
        <dd id="speed-note" class="note"></dd>
      </div>
      <div>
        <dt>Largest error</dt>
        <dd><output id="error"></output></dd>
        <dd id="error-note" class="note"></dd>
      </div>
    </dl>
    <details id="all">
      <summary>All of it</summary>
      <table class="pairs">
        <tbody id="table"></tbody>
      </table>
    </details>
  </div>

  <div id="runs" hidden>
    <h3>The runs so far</h3>
    <div class="data-table" tabindex="0" role="group" aria-label="The runs so far">
      <table>
        <thead>
          <tr>
            <th scope="col">Run</th>
            <th scope="col">Tokens</th>
            <th scope="col">Build</th>
            <th scope="col">Workers</th>
            <th scope="col">Time</th>
            <th scope="col">GFLOP/s</th>
            <th scope="col">Bits of the output</th>
          </tr>
        </thead>
        <tbody id="ledger"></tbody>
      </table>
    </div>
    <p class="note">
      The hash is of every bit of the output. It does not depend on how many workers share the rows: a row is computed in
      the same order of operations wherever it is computed. Builds differ in their last bits.
    </p>
  </div>

  <div>
    <h3>Memory against tokens</h3>
    <div id="chart"></div>
    <p class="note">
      Both axes are logarithmic. The line of sdpa counts query, key, value and output; each dot is a run on this page,
      measured, with everything in it.
    </p>
  </div>

  <div>
    <h3>This browser's engine</h3>
    <ul id="features" class="chips"></ul>
    <p class="note">What is there decides the build that “auto” takes: the fastest one that runs here.</p>
  </div>

  <p class="note">
    One head, head size 64, float32; query, key and value drawn from the standard normal distribution with fixed seeds.
  </p>
`;
