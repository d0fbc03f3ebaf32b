-- left tumble
SELECT a.id, b.price
FROM auctions [TUMBLE 10 SECONDS] a
LEFT JOIN bids [TUMBLE 10 SECONDS] b ON b.auction = a.id AND b.channel = 'web';
SELECT a.id, b.price
FROM auctions a
LEFT JOIN bids b ON b.auction = a.id AND b.channel = 'web' AND tumble(a.ts, 10) = tumble(b.ts, 10);

-- left until
SELECT a.id, b.price FROM auctions [UNTIL expires] a LEFT JOIN bids [NOW] b ON b.auction = a.id;
SELECT a.id, b.price
FROM (FROM auctions WHERE expires > ts) a
LEFT JOIN bids b ON b.auction = a.id AND b.ts >= a.ts AND b.ts < a.expires;

-- until winning
SELECT a.id, b.price
FROM auctions [UNTIL expires] a
JOIN bids [NOW] b ON b.auction = a.id AND b.price >= a.reserve;
SELECT a.id, b.price
FROM auctions a
JOIN bids b ON b.auction = a.id AND b.price >= a.reserve AND b.ts >= a.ts AND b.ts < a.expires;

-- tumble bracket
SELECT b.price, v.who FROM bids [TUMBLE 5 SECONDS] b JOIN views [TUMBLE 5 SECONDS] v ON v.auction = b.auction;
SELECT b.price, v.who FROM bids b JOIN views v ON v.auction = b.auction AND tumble(b.ts, 5) = tumble(v.ts, 5);

-- hop bracket
SELECT b.price, v.who, b.window_start, b.window_end
FROM bids [HOP 4 SECONDS SLIDE 2 SECONDS] b
JOIN views [HOP 4 SECONDS SLIDE 2 SECONDS] v ON v.auction = b.auction;
SELECT b.price, v.who, s, s + INTERVAL 4 SECOND
FROM hops(2)
JOIN bids b ON b.ts >= s AND b.ts < s + INTERVAL 4 SECOND
JOIN views v ON v.ts >= s AND v.ts < s + INTERVAL 4 SECOND AND v.auction = b.auction;

-- hop left
SELECT a.id, v.who
FROM auctions [HOP 4 SECONDS SLIDE 2 SECONDS] a
LEFT JOIN views [HOP 4 SECONDS SLIDE 2 SECONDS] v ON v.auction = a.id;
SELECT a.id, v.who
FROM hops(2)
JOIN auctions a ON a.ts >= s AND a.ts < s + INTERVAL 4 SECOND
LEFT JOIN views v ON v.ts >= s AND v.ts < s + INTERVAL 4 SECOND AND v.auction = a.id;

-- tvf tumble
SELECT a.id, b.price, a.window_start
FROM TUMBLE(TABLE auctions, DESCRIPTOR(ts), INTERVAL '10' SECOND) AS a
JOIN TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECONDS) b ON a.id = b.auction AND a.window_start =
    b.window_start AND a.window_end = b.window_end;
SELECT a.id, b.price, tumble(a.ts, 10)
FROM auctions a
JOIN bids b ON a.id = b.auction AND tumble(a.ts, 10) = tumble(b.ts, 10);

-- range interval
SELECT a.id FROM auctions [RANGE INTERVAL '2' SECONDS] a, bids [RANGE 0.5 SECONDS] b WHERE a.id=b.auction;
SELECT a.id
FROM auctions a, bids b
WHERE a.id = b.auction AND greatest(a.ts, b.ts) < least(a.ts + INTERVAL 2 SECOND, b.ts + INTERVAL 500
    MILLISECOND);

-- rows 1 per key
SELECT b.price, a.seller FROM bids [NOW] b JOIN auctions [PARTITION BY id ROWS 1] a ON a.id = b.auction;
SELECT b.price, a.seller
FROM bids b
JOIN (SELECT *, lead(ts) OVER (PARTITION BY id ORDER BY ts, seller NULLS FIRST, category NULLS FIRST, reserve,
    expires) AS until FROM auctions) a ON a.id = b.auction AND a.ts <= b.ts AND (a.until IS NULL OR b.ts <
    a.until);

-- q9 like
SELECT a.id, b.price
FROM auctions [UNTIL expires] a
JOIN bids [UNBOUNDED] b ON b.auction = a.id AND b.ts BETWEEN a.ts AND a.expires - INTERVAL 0.000001 SECONDS
LEFT ANTI JOIN bids [UNBOUNDED] better ON better.auction = a.id AND better.ts BETWEEN a.ts AND a.expires -
    INTERVAL 0.000001 SECONDS AND better.price > b.price;
SELECT a.id, b.price
FROM auctions a
JOIN bids b ON b.auction = a.id AND b.ts >= a.ts AND b.ts < a.expires
WHERE NOT EXISTS (FROM bids c WHERE c.auction = a.id AND c.ts >= a.ts AND c.ts < a.expires AND c.price >
    b.price);

-- tvf tumble left
SELECT a.id, b.price, a.window_end
FROM TUMBLE(TABLE auctions, DESCRIPTOR(ts), INTERVAL '10' SECOND) a
LEFT JOIN TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND) b ON a.id = b.auction AND a.window_start =
    b.window_start;
SELECT a.id, b.price, tumble(a.ts, 10) + INTERVAL 10 SECOND
FROM auctions a
LEFT JOIN bids b ON a.id = b.auction AND tumble(a.ts, 10) = tumble(b.ts, 10);

-- until semi
SELECT a.id
FROM auctions [UNTIL expires] a
LEFT SEMI JOIN bids [NOW] b ON b.auction = a.id AND b.price > a.reserve;
SELECT a.id
FROM auctions a
WHERE EXISTS (FROM bids b WHERE b.auction = a.id AND b.price > a.reserve AND b.ts >= a.ts AND b.ts < a.expires);

-- until anti
SELECT a.id
FROM auctions [UNTIL expires] a
LEFT ANTI JOIN bids [NOW] b ON b.auction = a.id AND b.price > a.reserve;
SELECT a.id
FROM auctions a
WHERE a.expires > a.ts AND NOT EXISTS (FROM bids b WHERE b.auction = a.id AND b.price > a.reserve AND b.ts >=
    a.ts AND b.ts < a.expires);

-- until both
SELECT a.id, x.id AS xid
FROM auctions [UNTIL expires] a
JOIN auctions [UNTIL expires] x ON a.category = x.category AND a.reserve < x.reserve;
SELECT a.id, x.id
FROM auctions a
JOIN auctions x ON a.category = x.category AND a.reserve < x.reserve AND greatest(a.ts, x.ts) < least(a.expires,
    x.expires);

-- now now
SELECT a.id, b.price FROM auctions [NOW] a JOIN bids [NOW] b ON a.id = b.auction OR a.seller = b.bidder;
SELECT a.id, b.price FROM auctions a JOIN bids b ON (a.id = b.auction OR a.seller = b.bidder) AND a.ts = b.ts;

-- slide left
SELECT a.id, b.price
FROM auctions [RANGE 4 SECONDS SLIDE 2 SECONDS] a
LEFT JOIN bids [RANGE 3 SECONDS SLIDE 3 SECONDS] b ON b.auction = a.id;
SELECT a.id, b.price
FROM auctions a
LEFT JOIN bids b ON b.auction = a.id AND greatest(slide(a.ts, 2), slide(b.ts, 3)) < least(slide(a.ts, 2) +
    INTERVAL 4 SECOND, slide(b.ts, 3) + INTERVAL 3 SECOND);
