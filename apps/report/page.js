// SPDX-License-Identifier: Apache-2.0
// Sorting and filtering of the table of figures.
(function () {
    "use strict";
    var table = document.getElementById("figures");
    if (!table) { return; }
    var body = table.tBodies[0], rows = Array.prototype.slice.call(body.rows);
    var heads = table.tHead.rows[0].cells, count = document.getElementById("count");
    var find = document.getElementById("find"), bench = document.getElementById("bench");
    var device = document.getElementById("device");

    function value(row, column) {
        var cell = row.cells[column], number = cell.getAttribute("data-v");
        return number === null ? cell.textContent : number === "" ? -Infinity : Number(number);
    }
    function sort(column) {
        var down = heads[column].getAttribute("aria-sort") === "ascending";
        for (var i = 0; i < heads.length; i++) { heads[i].removeAttribute("aria-sort"); }
        heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
        rows.sort(function (a, b) {
            var x = value(a, column), y = value(b, column);
            var order = typeof x === "number" && typeof y === "number" ? (x > y) - (x < y)
                : String(x).localeCompare(String(y), "en", { numeric: true });
            return down ? -order : order;
        });
        rows.forEach(function (row) { body.appendChild(row); });
    }
    function filter() {
        var words = find.value.toLowerCase().split(/\s+/).filter(Boolean), shown = 0;
        rows.forEach(function (row) {
            var text = row.textContent.toLowerCase();
            var fits = words.every(function (word) { return text.indexOf(word) >= 0; }) &&
                (!bench.value || row.cells[0].textContent === bench.value) &&
                (!device.value || row.cells[2].textContent === device.value);
            row.hidden = !fits;
            shown += fits ? 1 : 0;
        });
        count.textContent = shown + " of " + rows.length + " figures";
    }
    Array.prototype.forEach.call(heads, function (head, column) {
        head.firstElementChild.addEventListener("click", function () { sort(column); });
    });
    find.addEventListener("input", filter);
    bench.addEventListener("change", filter);
    device.addEventListener("change", filter);
    filter();
})();
